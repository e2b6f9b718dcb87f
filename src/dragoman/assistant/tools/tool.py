"""The interface between a tool and the turn loop."""

from typing import Any, Protocol

from dragoman.agent.turns.prepared_call import PreparedCall
from dragoman.assistant.models.model import ToolDefinition
from dragoman.protocol import v1


class Tool(Protocol):
    """A tool that a model can call."""

    definition: ToolDefinition
    title: str
    """Its title for users before its arguments are known, such as `Read a file`."""
    kind: v1.ToolKind

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare a call with these arguments. Raises ToolError if it is not possible."""
        ...
