"""The register of codes: bridges that share a database find out which of them created a code."""

from typing import Literal, Protocol

CodeKind = Literal["question", "login"]
"""The use of a code: the question of an approval link, or a login at an MCP server that waits for its browser."""


class CodeRegister(Protocol):
    """The codes of all bridges that share a database. One bridge adds its codes by this interface."""

    async def publish(self, kind: CodeKind, hash_: bytes, *, life_s: float, limit: int) -> None:
        """Register a code of this bridge. Beyond the limit the oldest code is removed. Raises LogError."""
        ...

    def now_s(self) -> float:
        """Return the time on the clock that all bridges share, in seconds since 1970."""
        ...
