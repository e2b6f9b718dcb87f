"""Puts any ACP agent into another framework: `pydantic_ai` as a tool, and `langgraph` as a node.

Each module imports its framework, so import it by name: `from dragoman.client.adapters import langgraph`.
"""
