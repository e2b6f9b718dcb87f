"""Serving MCP: Python functions as tools, inside the client, at a loopback address, or behind a bridge on stdio."""
