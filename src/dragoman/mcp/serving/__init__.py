"""Serving MCP: Python functions as tools, over the ACP connection, at a loopback address, or through a stdio relay."""

from dragoman.mcp.serving.function_call import Image, Progress
from dragoman.mcp.serving.function_tool import FunctionTool, UnusableFunction

__all__ = ["FunctionTool", "Image", "Progress", "UnusableFunction"]
