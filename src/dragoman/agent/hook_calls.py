"""Calls of a program's hooks: the one place where their exceptions become errors in words, with a logged traceback."""

import asyncio
import logging
from collections.abc import Awaitable, Generator, Sequence
from contextlib import contextmanager

from dragoman.agent.program import AgentProgram, SessionOrigin
from dragoman.agent.session import Session
from dragoman.agent.tool_call import explain
from dragoman.errors import DragomanError, ErrorCode, RpcError
from dragoman.protocol import v1

END_TIMEOUT_S = 4.0
"""How long a hook may take at the end of a session or of a connection: the client waits, or is gone."""

_log = logging.getLogger("dragoman.agent")


class HookCalls:
    """Calls the hooks of one program."""

    def __init__(self, program: AgentProgram) -> None:
        self._hooks = program.hooks
        self._name = program.info.title or program.info.name

    async def open(self, session: Session) -> None:
        """Say that a session's log is about to be begun or read; raises RpcError and DragomanError."""
        for hook in self._hooks.open:
            with self._refusing("on_open"):
                await hook(session)

    def take_record(self, session: Session, data: bytes) -> None:
        """Give back a record of the program; raises RpcError and DragomanError."""
        for hook in self._hooks.record:
            with self._refusing("on_record"):
                hook(session, data)

    async def begin(self, session: Session, origin: SessionOrigin) -> None:
        """Say that a session has become live; raises RpcError and DragomanError."""
        for hook in self._hooks.session:
            with self._refusing("on_session"):
                await hook(session, origin)

    async def change(self, session: Session, option: str, value: str | bool) -> None:
        """Say that a client changes an option; raises RpcError and DragomanError."""
        for hook in self._hooks.option:
            with self._refusing("on_option"):
                await hook(session, option, value)

    def check(self, session: Session, prompt: Sequence[v1.ContentBlock]) -> bool:
        """Let the program check a prompt, and return whether it does; raises RpcError and DragomanError."""
        for hook in self._hooks.check:
            with self._refusing("check_prompt"):
                hook(session, prompt)
        return bool(self._hooks.check)

    async def close(self, session: Session) -> None:
        """Say that a session is closed; a failure is logged."""
        await asyncio.gather(*(_end(hook(session), "on_close") for hook in self._hooks.close))

    async def shut_down(self) -> None:
        """Say that the connection has ended; a failure is logged."""
        await asyncio.gather(*(_end(hook(), "on_shutdown") for hook in self._hooks.shutdown))

    @contextmanager
    def _refusing(self, name: str) -> Generator[None]:
        try:
            yield
        except DragomanError:
            raise
        except Exception as error:
            _log.exception("the %s of the program failed", name)
            problem = f"{self._name} failed: {explain(error)}; its log on stderr has the details"
            raise RpcError(ErrorCode.INTERNAL_ERROR, problem) from error


async def _end(hook: Awaitable[None], name: str) -> None:
    try:
        async with asyncio.timeout(END_TIMEOUT_S):
            await hook
    except Exception:  # noqa: BLE001 -- boundary: a callback of the program, when the session has to end all the same
        _log.warning("the %s of the program failed", name, exc_info=True)
