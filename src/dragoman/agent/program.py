"""What a program declares about its agent: functions, hooks, modes, options, servers, limits."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from dragoman.agent.settings import Mode, PermissionLevel, SessionOption
from dragoman.errors import InvalidParams
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.agent.commands.command import SlashCommand
    from dragoman.agent.servers.session_servers import OwnServer
    from dragoman.agent.session import Session
    from dragoman.agent.turn import Turn

    PromptFunction = Callable[[Turn], Awaitable[str | None]] | Callable[[Turn], AsyncIterator[Any]]
    SessionFunction = Callable[[Session, "SessionOrigin"], Awaitable[None]]
    ExtensionFunction = Callable[[dict[str, Any]], Awaitable[Any]]
    SampleFunction = Callable[[Turn, dict[str, Any]], Awaitable[dict[str, Any]]]

CONTENT_KINDS: dict[type, str] = {v1.ImageContent: "image", v1.AudioContent: "audio"}
"""The content of prompts that an agent need not take; text, links and embedded resources it always does."""

NO_LOGIN = "none"
"""The id of the method of an agent that needs no login."""

SessionOrigin = Literal["new", "load", "resume", "fork"]
"""How a session has become live."""


SystemPromptMode = Literal["append", "override"]
"""`append`: instructions of a client are added to the agent's own. `override`: they may also take their place."""


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


@runtime_checkable
class AuthReporter(Protocol):
    """An `Authenticator` that knows whether the login is done; that of another one is `unknown` to clients."""

    def status(self) -> v1.AuthStatusResponse:
        """Return the state of the login, and the accounts to show; is called often, and raises nothing."""
        ...


class NoLogin:
    """The login of an agent that needs none: one method, which always succeeds.

    Clients and registries expect every agent to offer a method.
    """

    can_log_out = False
    """There is nothing to forget."""

    def __init__(self, description: str = "This agent needs no login.") -> None:
        self._description = description

    def offer(self, client: v1.ClientCapabilities) -> list[v1.AuthMethod]:
        """Return the one method."""
        del client
        return [v1.AuthMethodAgent(id=NO_LOGIN, name="No login", description=self._description)]

    def authenticate(self, method_id: str) -> None:
        """Succeed; raises InvalidParams for another method."""
        if method_id != NO_LOGIN:
            problem = f"{method_id!r} was not offered; this agent needs no login, and offers {NO_LOGIN}"
            raise InvalidParams("params.methodId", problem, expected=NO_LOGIN)

    def log_out(self) -> None:
        """Do nothing: it is not offered."""

    def status(self) -> v1.AuthStatusResponse:
        """Say that no login is needed."""
        return v1.AuthStatusResponse(state="not_required")


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
        self.system_prompt: SystemPromptMode | None = None
        """The mode up to which the instructions of clients are taken; None when the program does not look at them."""
        self.servers: Sequence[OwnServer] = ()
        self.find_auth: Callable[[], Authenticator | None] = _no_login
        self.find_takes: Callable[[], Collection[str]] = tuple[str, ...]
        self.commands: dict[str, SlashCommand] = {}
        self.extensions = Extensions()
        self.hooks = Hooks()
        self.live_sessions: set[str] = set()
        """The ids of the sessions that are live, on any connection of this process."""

    @property
    def fallback_mode(self) -> Mode:
        """The mode of a program without modes."""
        return Mode("default", "Default", permission=self.permission.level)


class Extensions:
    """What a program has beyond the protocol, for clients that know more than it."""

    def __init__(self) -> None:
        self.functions: dict[str, ExtensionFunction] = {}
        """They answer requests, by the names of those."""
        self.meta: dict[str, Any] = {}
        """Of its capabilities."""


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
