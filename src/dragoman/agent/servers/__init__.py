"""The MCP servers of a session: those that the client gave, and the agent's own, shared among sessions."""
