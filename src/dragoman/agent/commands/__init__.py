"""Slash commands: requests of the user to the program, and the prompts of MCP servers."""
