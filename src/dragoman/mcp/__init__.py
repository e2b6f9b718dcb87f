"""MCP servers: connections over child processes, over HTTP, and over the ACP connection itself."""
