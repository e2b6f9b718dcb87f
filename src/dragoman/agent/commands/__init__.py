"""Slash commands: requests of the person to the program itself, and the prompts of MCP servers."""
