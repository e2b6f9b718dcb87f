"""What a program declares about its agent: functions, hooks, modes, options, servers, limits."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from dragoman.agent.settings import Mode, PermissionLevel, SessionOption
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.agent.commands.command import SlashCommand
    from dragoman.agent.servers.session_servers import OwnServer
    from dragoman.agent.session import Session
    from dragoman.agent.turn import Turn

    PromptFunction = Callable[[Turn], Awaitable[str | None]] | Callable[[Turn], AsyncIterator[Any]]
    SessionFunction = Callable[[Session, "SessionOrigin"], Awaitable[None]]
    SampleFunction = Callable[[Turn, dict[str, Any]], Awaitable[dict[str, Any]]]

SessionOrigin = Literal["new", "load", "resume", "fork"]
"""How a session has become live."""


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
        """See that the login is done; raises RpcError when it is not, InvalidParams for an unknown method."""
        ...

    def log_out(self) -> None:
        """Forget the login; raises RpcError."""
        ...


class PermissionDefaults(msgspec.Struct, frozen=True):
    """How permission is asked for."""

    level: PermissionLevel = "ask"
    """What runs unasked in a program without modes."""
    timeout_s: float | None = None
    """How long a person may take; then it is a denial."""
    remember: Literal["session", "project"] = "session"
    """How long "always" holds: in the session, or in all sessions of the project."""


class AgentProgram:
    """The declarations of one agent."""

    def __init__(self, info: v1.Implementation) -> None:
        self.info = info
        self.modes: Sequence[Mode] = ()
        self.options: Sequence[SessionOption] = ()
        self.permission = PermissionDefaults()
        self.servers: Sequence[OwnServer] = ()
        self.find_auth: Callable[[], Authenticator | None] = _no_login
        self.find_takes: Callable[[], Collection[str]] = tuple[str, ...]
        self.commands: dict[str, SlashCommand] = {}
        self.hooks = Hooks()

    @property
    def fallback_mode(self) -> Mode:
        """The mode of a program without modes."""
        return Mode("default", "Default", permission=self.permission.level)


class Hooks:
    """The functions of a program that answer, and those that are called on the way."""

    def __init__(self) -> None:
        self.prompt: PromptFunction | None = None
        self.open: list[Callable[[Session], Awaitable[None]]] = []
        """Before a session's log is read, or begun."""
        self.record: list[Callable[[Session, bytes], None]] = []
        """For each record of `Session.record` in a log that is read."""
        self.session: list[SessionFunction] = []
        """When a session has become live, before that is answered."""
        self.check: list[Callable[[Session, Sequence[v1.ContentBlock]], None]] = []
        """Before a prompt begins a turn; may refuse it."""
        self.turn: list[Callable[[Turn], Awaitable[None]]] = []
        """When a turn has begun, before commands are looked for."""
        self.option: list[Callable[[Session, str, str | bool], Awaitable[None]]] = []
        """Before an option or the mode changes by the client's request; may refuse it."""
        self.sample: SampleFunction | None = None
        self.close: list[Callable[[Session], Awaitable[None]]] = []
        self.shutdown: list[Callable[[], Awaitable[None]]] = []


def _no_login() -> None:
    return None
