"""Python functions served as MCP tools, over the ACP connection or through a stdio relay."""

from dragoman.mcp.serving.function_call import Image, Progress
from dragoman.mcp.serving.function_tool import FunctionTool, UnusableFunctionError

__all__ = ["FunctionTool", "Image", "Progress", "UnusableFunctionError"]
