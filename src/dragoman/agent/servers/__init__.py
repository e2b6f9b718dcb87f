"""The MCP servers of a session: the client's servers, and the agent's own, which sessions share."""
