import dragoman.mcp.link  # noqa: F401 -- what speaks MCP takes long to import, and tests are to wait for servers only
