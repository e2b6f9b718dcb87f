"""What a server may ask of whoever connected to it. Requests and answers are the plain JSON of MCP."""

from typing import Any, Protocol


class Host(Protocol):
    """Answers the requests of a server."""

    def roots(self) -> list[str]:
        """Return the directories that the server may work in, as absolute paths."""
        ...

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the person something for the server; the answer is an MCP ElicitResult."""
        ...

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model something for the server; the answer is an MCP CreateMessageResult. Raises RpcError."""
        ...


DECLINED: dict[str, Any] = {"action": "decline"}
