"""MCP: servers to connect to, over our own processes, over HTTP, and over the ACP connection itself."""
