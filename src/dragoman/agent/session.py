"""A session: where it works, the model it talks with, and the turn that is running."""

import os
import uuid

from dragoman.agent.models.model import Conversation
from dragoman.agent.turn import Turn
from dragoman.errors import ErrorCode, InvalidParams, RpcError


class Session:
    """One conversation in one working directory; one turn at a time."""

    def __init__(self, cwd: str, conversation: Conversation) -> None:
        self.id = str(uuid.uuid4())
        self.cwd = cwd
        self.conversation = conversation
        self.turn: Turn | None = None

    def begin(self, turn: Turn) -> None:
        """Make `turn` the running one; raises RpcError when another one is."""
        if self.turn is not None:
            raise RpcError(
                ErrorCode.INVALID_REQUEST,
                f"session {self.id} is busy with a turn; wait for its answer or send session/cancel first",
            )
        self.turn = turn

    def cancel(self) -> None:
        """Stop the running turn, if there is one."""
        if self.turn is not None:
            self.turn.cancel()


def check_cwd(cwd: str) -> str:
    """Return the directory when a session can work in it; raises InvalidParams in words."""
    path = "params.cwd"
    if not os.path.isabs(cwd):  # noqa: PTH117 -- a Path would turn "" into "."
        hint = "; `~` is for shells, send the home directory itself" if cwd.startswith("~") else ""
        raise InvalidParams(path, f"expected an absolute path, got {cwd!r}{hint}", expected="an absolute path", got=cwd)
    if "\0" in cwd:
        raise InvalidParams(path, "a path cannot hold a NUL character")
    if not os.path.isdir(cwd):  # noqa: PTH112 -- the path is passed on as it came
        there = "is not a directory" if os.path.exists(cwd) else "does not exist"  # noqa: PTH110 -- as above
        raise InvalidParams(path, f"{cwd} {there} here; send an existing directory", got=cwd)
    return cwd
