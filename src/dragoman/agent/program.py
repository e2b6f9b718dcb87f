"""The declarations of an agent, and the calls of its callbacks.

An exception in a callback becomes an error with a short reason, and its traceback is logged.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from dragoman.agent.sessions.settings import Mode, PermissionLevel, SessionOption, check_level
from dragoman.errors import DragomanError, ErrorCode, InvalidParamsError, RpcError
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.agent.commands.command import SlashCommand
    from dragoman.agent.servers.session_servers import OwnServer
    from dragoman.agent.sessions.session import Session
    from dragoman.agent.turns.turn import Turn

    PromptFunction = Callable[[Turn], Awaitable[str | None]] | Callable[[Turn], AsyncIterator[Any]]
    SessionFunction = Callable[[Session, "SessionOrigin"], Awaitable[None]]
    ExtensionFunction = Callable[[dict[str, Any]], Awaitable[Any]]
    SampleFunction = Callable[[Turn, dict[str, Any]], Awaitable[dict[str, Any]]]

CONTENT_KINDS: dict[type, str] = {v1.ImageContent: "image", v1.AudioContent: "audio"}
"""The prompt content that is optional for agents. Text, links and embedded resources are always accepted."""

NO_LOGIN = "none"
"""The ID of the auth method of an agent that needs no login."""

SessionOrigin = Literal["new", "load", "resume", "fork"]
"""How a session became live."""


SystemPromptMode = Literal["append", "override"]
"""`append`: a client's instructions are added to the agent's. `override`: they may also replace them."""

END_TIMEOUT_S = 4.0
"""How long a hook may take at the end of a session or connection, when the client waits or is gone."""

_log = logging.getLogger("dragoman.agent")


class Authenticator(Protocol):
    """The login of an agent that needs one."""

    @property
    def can_log_out(self) -> bool:
        """Whether `logout` is offered."""
        ...

    def offer(self, client: v1.ClientCapabilities) -> list[v1.AuthMethod]:
        """Return the methods that a client can use."""
        ...

    def authenticate(self, method_id: str) -> None:
        """Check that the login is done. Raises RpcError if not, and InvalidParamsError for an unknown method."""
        ...

    def log_out(self) -> None:
        """Delete the login. Raises RpcError."""
        ...


@runtime_checkable
class AuthReporter(Protocol):
    """An `Authenticator` that knows whether the login is done. For any other, clients see `unknown`."""

    def status(self) -> v1.AuthStatusResponse:
        """Return the state of the login and the accounts to show. It is called often and must not raise."""
        ...


class NoAuth:
    """The login of an agent that needs none. Its only method always succeeds.

    Clients and registries expect every agent to offer a method.
    """

    can_log_out = False
    """No login exists that could be deleted."""

    def __init__(self, description: str = "This agent needs no login.") -> None:
        self._description = description

    def offer(self, client: v1.ClientCapabilities) -> list[v1.AuthMethod]:
        """Return the only method."""
        del client
        return [v1.AuthMethodAgent(id=NO_LOGIN, name="No login", description=self._description)]

    def authenticate(self, method_id: str) -> None:
        """Accept the only method. Raises InvalidParamsError for any other."""
        if method_id != NO_LOGIN:
            problem = f"{method_id!r} was not offered; this agent needs no login and offers {NO_LOGIN}"
            raise InvalidParamsError("params.methodId", problem, expected=NO_LOGIN)

    def log_out(self) -> None:
        """Do nothing, because logging out is not offered."""

    def status(self) -> v1.AuthStatusResponse:
        """Return that no login is required."""
        return v1.AuthStatusResponse(state="not_required")


class PermissionDefaults(msgspec.Struct, frozen=True):
    """How the agent asks for permission."""

    level: PermissionLevel = "ask"
    """The actions that run without asking in a program without modes."""
    timeout_s: float | None = None
    """How long the user may take to answer. After that, the request is denied."""
    remember: Literal["session", "project"] = "session"
    """How long "always" applies: to the session, or to all sessions of the project."""

    def __post_init__(self) -> None:
        check_level(self.level)


class AgentProgram:
    """The declarations of one agent. Each callback is named after the `Agent` method that registers it."""

    def __init__(self, info: v1.Implementation) -> None:
        self.info = info
        self.modes: Sequence[Mode] = ()
        self.options: Sequence[SessionOption] = ()
        self.permission = PermissionDefaults()
        self.system_prompt: SystemPromptMode | None = None
        """The most that a client's instructions may do. None if the program ignores them."""
        self.servers: Sequence[OwnServer] = ()
        self.find_auth: Callable[[], Authenticator | None] = _no_login
        self.find_content_types: Callable[[], Collection[str]] = tuple[str, ...]
        self.commands: dict[str, SlashCommand] = {}
        self.session_commands: Callable[[Session], Iterable[SlashCommand]] = lambda _: ()
        """Returns the commands of one session besides `commands`. After a change, call `Session.show_commands`."""
        self.extensions: dict[str, ExtensionFunction] = {}
        """The functions that answer extension requests, by method."""
        self.meta: dict[str, Any] = {}
        """The `_meta` of the capabilities, for clients that know more than the protocol."""
        self.on_prompt: PromptFunction | None = None
        self.on_open: list[Callable[[Session], Awaitable[None]]] = []
        """Called before a session's log is read or created."""
        self.on_record: list[Callable[[Session, bytes], None]] = []
        """Called for each `Session.record` value in a log that is read."""
        self.on_session: list[SessionFunction] = []
        """Called when a session becomes live, before the request is answered."""
        self.check_prompt: list[Callable[[Session, Sequence[v1.ContentBlock]], None]] = []
        """Called before a prompt begins a turn. May refuse the prompt."""
        self.on_turn: list[Callable[[Turn], Awaitable[None]]] = []
        """Called when a turn begins, before commands are parsed."""
        self.on_option: list[Callable[[Session, str, str | bool], Awaitable[None]]] = []
        """Called before a client changes an option or the mode. May refuse the change."""
        self.on_sample: SampleFunction | None = None
        self.on_close: list[Callable[[Session], Awaitable[None]]] = []
        self.on_shutdown: list[Callable[[], Awaitable[None]]] = []
        self.unawaited: list[str] = []
        """The calls without `await`, each once."""
        self.live_sessions: set[str] = set()
        """The IDs of the live sessions on all connections of this process."""

    @property
    def fallback_mode(self) -> Mode:
        """The mode of a program without modes."""
        return Mode("default", "Default", permission=self.permission.level)

    async def open(self, session: "Session") -> None:
        """Call `on_open`. Raises RpcError and DragomanError."""
        for hook in self.on_open:
            with self._refusing("on_open"):
                await hook(session)

    def restore_record(self, session: "Session", data: bytes) -> None:
        """Call `on_record`. Raises RpcError and DragomanError."""
        for hook in self.on_record:
            with self._refusing("on_record"):
                hook(session, data)

    async def begin(self, session: "Session", origin: SessionOrigin) -> None:
        """Call `on_session`. Raises RpcError and DragomanError."""
        for hook in self.on_session:
            with self._refusing("on_session"):
                await hook(session, origin)

    async def change(self, session: "Session", option: str, value: str | bool) -> None:
        """Call `on_option`. Raises RpcError and DragomanError."""
        for hook in self.on_option:
            with self._refusing("on_option"):
                await hook(session, option, value)

    def check(self, session: "Session", prompt: Sequence[v1.ContentBlock]) -> bool:
        """Call `check_prompt` and return whether the program has one. Raises RpcError and DragomanError."""
        for hook in self.check_prompt:
            with self._refusing("check_prompt"):
                hook(session, prompt)
        return bool(self.check_prompt)

    async def close(self, session: "Session") -> None:
        """Call `on_close`. Log a failure."""
        await asyncio.gather(*(_end(hook(session), "on_close") for hook in self.on_close))

    async def shut_down(self) -> None:
        """Call `on_shutdown`. Log a failure."""
        await asyncio.gather(*(_end(hook(), "on_shutdown") for hook in self.on_shutdown))

    def report_unawaited(self, calls: Sequence[str]) -> None:
        """Log calls without `await`, each once."""
        for call in calls:
            if call not in self.unawaited:
                self.unawaited.append(call)
                _log.warning("%s", call)

    def failed(self, reason: str) -> RpcError:
        """Return the error for a client's request whose callback failed."""
        name = self.info.title or self.info.name
        return RpcError(ErrorCode.INTERNAL_ERROR, f"{name} failed: {reason}; see its log on stderr")

    @contextmanager
    def _refusing(self, name: str) -> Generator[None]:
        from dragoman.agent.turns.tool_call import explain

        try:
            yield
        except DragomanError:
            raise
        except Exception as error:
            _log.exception("the %s of the program failed", name)
            raise self.failed(explain(error)) from error


async def _end(hook: Awaitable[None], name: str) -> None:
    try:
        async with asyncio.timeout(END_TIMEOUT_S):
            await hook
    except Exception:  # noqa: BLE001 -- boundary: a callback of the program, while the session must end
        _log.warning("the %s of the program failed", name, exc_info=True)


def _no_login() -> None:
    return None
