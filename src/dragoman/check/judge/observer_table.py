"""The observers of a judge: which of them apply to the version, and which messages each handles."""

from collections.abc import Callable

from dragoman.check.judge.client_services import FileObserver, TerminalObserver
from dragoman.check.judge.content import CommandObserver, ContentObserver, ElicitationObserver
from dragoman.check.judge.initialization import AuthObserver, InitObserver
from dragoman.check.judge.message import SeenMessage
from dragoman.check.judge.noise import NoiseObserver
from dragoman.check.judge.observer import FindingSink, Observer, handlers
from dragoman.check.judge.open_values import OpenValueObserver
from dragoman.check.judge.prompt_lifecycle import AcceptanceObserver, WorkObserver
from dragoman.check.judge.prompt_turn import CancelObserver, PromptObserver
from dragoman.check.judge.replay import ReplayObserver
from dragoman.check.judge.rpc import RpcObserver
from dragoman.check.judge.session_list import CloseObserver, DeleteObserver, ListObserver
from dragoman.check.judge.session_load import LoadObserver
from dragoman.check.judge.session_settings import ConfigObserver, ModeObserver
from dragoman.check.judge.session_setup import McpObserver, NewObserver, ResumeObserver
from dragoman.check.judge.shape import ExtensionObserver, ShapeObserver
from dragoman.check.judge.tool_calls import PendingPermissionObserver, PermissionObserver, ToolObserver
from dragoman.check.judge.unanswered import UnansweredObserver
from dragoman.check.judge.upserts import DisplayObserver, MessageObserver, ToolCallObserver, UnknownAnswerObserver
from dragoman.check.judge.work_cancel import SessionCloseObserver, WorkCancelObserver
from dragoman.check.rule import Version
from dragoman.check.rules import RULES

OBSERVERS: tuple[type[Observer], ...] = (
    NoiseObserver,
    RpcObserver,
    UnansweredObserver,
    ShapeObserver,
    InitObserver,
    AuthObserver,
    NewObserver,
    LoadObserver,
    ResumeObserver,
    McpObserver,
    ListObserver,
    CloseObserver,
    DeleteObserver,
    ModeObserver,
    ConfigObserver,
    PromptObserver,
    CancelObserver,
    ToolObserver,
    PermissionObserver,
    PendingPermissionObserver,
    FileObserver,
    TerminalObserver,
    ContentObserver,
    CommandObserver,
    ElicitationObserver,
    ExtensionObserver,
    ReplayObserver,
    AcceptanceObserver,
    WorkObserver,
    WorkCancelObserver,
    SessionCloseObserver,
    MessageObserver,
    ToolCallObserver,
    UnknownAnswerObserver,
    DisplayObserver,
    OpenValueObserver,
)

MAX_ROUTES = 512
"""Maximum number of cached message kinds, because a peer may invent any number of methods."""

Steps = tuple[tuple[str, Callable[[SeenMessage], None]], ...]


class ObserverTable:
    """The observers for the current version. Each is created once, even if the version changes."""

    def __init__(self, sink: FindingSink) -> None:
        self._sink = sink
        self._created: dict[type[Observer], Observer] = {}
        self._handlers: dict[str, list[tuple[str, Callable[[SeenMessage], None]]]] = {}
        self._routes: dict[tuple[str, str], Steps] = {}
        self.observers: list[Observer] = []
        self.applicable: frozenset[str] = frozenset()
        """The rules that apply to the version."""
        self.use_version(sink.state.agreement.dialect.version)

    def use_version(self, version: Version) -> None:
        """Judge by the rules of a version from now on."""
        self.applicable = frozenset(rule.id for rule in RULES.values() if version in rule.versions)
        self.observers = [self._created.get(make) or make(self._sink) for make in OBSERVERS if version in make.versions]
        self._created.update({type(each): each for each in self.observers})
        self._handlers.clear()
        self._routes.clear()
        for observer in self.observers:
            for key, handler in handlers(observer):
                self._handlers.setdefault(key, []).append((observer.area, handler))

    def count(self) -> None:
        """Make the observers pass on the occasions that they have counted."""
        for observer in self.observers:
            observer.count()

    def find_route(self, message: SeenMessage) -> Steps:
        """Return the areas and handlers for a message, in order."""
        if message.method == "session/update" and message.kind == "notification":
            kind = message.update.get("sessionUpdate")
            key = ("update", kind if isinstance(kind, str) else "")
        else:
            key = (message.kind, message.method)
        route = self._routes.get(key)
        return route if route is not None else self._make_route(key)

    def _make_route(self, key: tuple[str, str]) -> Steps:
        # From general to specific: "message", "answer", "answer session/prompt", "result", "result session/prompt".
        kind, name = key
        kinds = ("answer", kind) if kind in ("result", "error") else (kind,)
        route = self.find_steps("message", *(word for each in kinds for word in (each, f"{each} {name}")))
        if len(self._routes) < MAX_ROUTES:
            self._routes[key] = route
        return route

    def find_steps(self, *keys: str) -> Steps:
        """Return the areas and handlers that watch any of these keys."""
        return tuple(step for each in keys for step in self._handlers.get(each, ()))
