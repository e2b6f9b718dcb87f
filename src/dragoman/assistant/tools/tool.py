"""The interface between a tool and the turn loop."""

from typing import Any, Protocol

from dragoman.agent.prepared_call import PreparedCall
from dragoman.assistant.models.model import ToolDefinition
from dragoman.protocol import v1


class Tool(Protocol):
    """Something that a model can ask for."""

    definition: ToolDefinition
    title: str
    """Its title for people, as long as its arguments are not known: `Read a file`."""
    kind: v1.ToolKind

    async def prepare(self, arguments: dict[str, Any]) -> PreparedCall:
        """Prepare a call with these arguments; raises ToolFailure when it cannot be done."""
        ...
