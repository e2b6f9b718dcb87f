"""The MCP servers of a session: those that the client gave, and those of the agent file, shared among sessions."""
