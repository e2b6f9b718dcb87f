"""A live session: where it works, what was said in it, what is set, and the turn that is running."""

import asyncio
import os
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import msgspec

from dragoman.agent.models.message import AssistantMessage, Message, UserMessage
from dragoman.agent.models.model import Model
from dragoman.agent.outlet import Outlet
from dragoman.agent.settings import Settings
from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.protocol import v1
from dragoman.store import Header, Log


class Session:
    """One conversation in one working directory; one turn at a time.

    Its log begins with the first prompt: until then the session lives in memory alone.
    """

    def __init__(self, header: Header, outlet: Outlet, model: Model) -> None:
        self.header = header
        self.additional_directories: Sequence[str] = header.additional_directories
        self.outlet = outlet
        self.model = model
        self.conversation = model.start()
        self.settings = Settings()
        self.messages: list[Message] = []
        self.title: str | None = None
        self.notices: list[str] = []
        self._cancel_turn: Callable[[], None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def log(self) -> Log | None:
        return self.outlet.log

    @property
    def message_count(self) -> int:
        """What was said by the person and by the model."""
        return sum(isinstance(message, UserMessage | AssistantMessage) for message in self.messages)

    @contextmanager
    def turn(self, cancel: Callable[[], None]) -> Generator[None]:
        """Be busy with a turn that `cancel` stops; raises RpcError when another one is running."""
        if self._cancel_turn is not None:
            raise RpcError(
                ErrorCode.INVALID_REQUEST,
                f"session {self.id} is busy with a turn; wait for its answer or send session/cancel first",
            )
        self._cancel_turn = cancel
        self._idle.clear()
        try:
            yield
        finally:
            self._cancel_turn = None
            self._idle.set()

    def cancel(self) -> None:
        """Stop the running turn, if there is one."""
        if self._cancel_turn is not None:
            self._cancel_turn()

    async def wait_idle(self) -> None:
        """Wait until no turn is running."""
        await self._idle.wait()

    def remember(self, message: Message) -> None:
        """Add to what the model knows, and to the log."""
        self.messages.append(message)
        self.outlet.record("model", msgspec.json.encode(message))

    async def entitle(self, title: str) -> None:
        """Give the session its title, and tell the client."""
        self.title = title
        self.outlet.record("title", msgspec.json.encode(title))
        await self.outlet.send(v1.SessionInfoUpdate(title=title))

    async def show_notices(self) -> None:
        """Tell the person, once, what they should know of their session; the conversation itself stays as it was."""
        notices, self.notices = self.notices, []
        for notice in notices:
            block = v1.TextContent(text=f"{notice}\n\n")
            await self.outlet.send(v1.AgentMessageChunk(content=block, message_id=str(uuid.uuid4())), logged=False)

    def record_settings(self) -> None:
        """Log what is set."""
        self.outlet.record("config", msgspec.json.encode(self.settings))


def turn_end(session: Session, outcome: str) -> bytes:
    """Make the record that ends a turn; it says in short what the session then is, for lists."""
    return msgspec.json.encode(
        {"event": "end", "stopReason": outcome, "title": session.title, "messages": session.message_count}
    )


def check_cwd(cwd: str, path: str = "params.cwd") -> str:
    """Return the directory when a session can work in it; raises InvalidParams in words."""
    if not os.path.isabs(cwd):  # noqa: PTH117 -- a Path would turn "" into "."
        hint = "; `~` is for shells, send the home directory itself" if cwd.startswith("~") else ""
        raise InvalidParams(path, f"expected an absolute path, got {cwd!r}{hint}", expected="an absolute path", got=cwd)
    if "\0" in cwd:
        raise InvalidParams(path, "a path cannot hold a NUL character")
    if not os.path.isdir(cwd):  # noqa: PTH112 -- the path is passed on as it came
        there = "is not a directory" if os.path.exists(cwd) else "does not exist"  # noqa: PTH110 -- as above
        raise InvalidParams(path, f"{cwd} {there} here; send an existing directory", got=cwd)
    return cwd


def check_directories(directories: Sequence[str]) -> list[str]:
    """Return the additional directories when a session can work in them; raises InvalidParams in words."""
    return [
        check_cwd(directory, f"params.additionalDirectories[{position}]")
        for position, directory in enumerate(directories)
    ]
