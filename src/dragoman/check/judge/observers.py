"""All observers, in the order in which they see a message."""

from dragoman.check.judge.content import CommandObserver, ContentObserver
from dragoman.check.judge.elicitation import ElicitationObserver
from dragoman.check.judge.extension import ExtensionObserver
from dragoman.check.judge.handshake import AuthObserver, InitObserver
from dragoman.check.judge.keeping import CloseObserver, DeleteObserver, ListObserver
from dragoman.check.judge.noise import NoiseObserver
from dragoman.check.judge.observer import Observer
from dragoman.check.judge.opening import McpObserver, NewObserver, ResumeObserver
from dragoman.check.judge.replay import LoadObserver
from dragoman.check.judge.rpc import RpcObserver
from dragoman.check.judge.services import FileObserver, TerminalObserver
from dragoman.check.judge.settings import ConfigObserver, ModeObserver
from dragoman.check.judge.shape import ShapeObserver
from dragoman.check.judge.tools import PendingPermissionObserver, PermissionObserver, ToolObserver
from dragoman.check.judge.turns import CancelObserver, PromptObserver

OBSERVERS: tuple[type[Observer], ...] = (
    NoiseObserver,
    RpcObserver,
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
)
