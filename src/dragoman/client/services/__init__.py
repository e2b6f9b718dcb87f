"""Services that the client offers to its agent: files, terminals, functions, forms and MCP servers."""
