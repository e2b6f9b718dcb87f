"""The register in which bridges that share a database find things in each other's memory, by the codes of people."""

from typing import Literal, Protocol

CodeKind = Literal["question", "login"]
"""What a code leads to: a question that a link is for, or a login at an MCP server that waits for its browser."""


class CodeRegister(Protocol):
    """The codes of all bridges that share a database, as one of them adds to it."""

    async def publish(self, kind: CodeKind, hash_: bytes, *, life_s: float, limit: int) -> None:
        """Have every bridge find what a code leads to here; beyond the limit the oldest goes. Raises LogFailed."""
        ...

    def now_s(self) -> float:
        """Return the time that all of them tell, in seconds since 1970."""
        ...
