"""The messages between nodes, which are rows of `dragoman_message`.

A link connects a viewer on one node with the sessions that another node owns. The viewer's node opens the link and
forwards the viewer's messages unchanged. The owner has a viewer object for the link and sends back the messages that
only this viewer receives. Journal records are not sent, because every node reads them from the database.
"""

from typing import TypeAlias

import msgspec

from dragoman.bridge.translation import Version
from dragoman.bridge.viewers import ViewerAccess


class OpenLink(msgspec.Struct, frozen=True, tag="open"):
    """Opens a link: the owner of a session creates a viewer for it."""

    agent: str
    link: str
    initialize: bytes
    """The viewer's params of `initialize`."""
    access: ViewerAccess
    over_http: bool
    address: str | None = None
    """The address at which the viewer reaches its bridge."""
    losses: int = 0
    """How often the viewer's node has given up its links to the owner. Links from before a loss are void."""


class ViewerLine(msgspec.Struct, frozen=True, tag="line"):
    """A message from the viewer."""

    agent: str
    link: str
    line: bytes


class CloseLink(msgspec.Struct, frozen=True, tag="close"):
    """The viewer has left."""

    agent: str
    link: str


class Bound(msgspec.Struct, frozen=True, tag="bound"):
    """The viewer subscribed to a session, after a record of its journal."""

    agent: str
    link: str
    session: str
    key: int
    header: bytes
    end: int
    """The last committed record."""
    cursor: int
    has_history: bool
    versions: list[tuple[int, Version]]


class Unbound(msgspec.Struct, frozen=True, tag="unbound"):
    """The viewer's subscription to a session ended."""

    agent: str
    link: str
    session: str


class Skip(msgspec.Struct, frozen=True, tag="skip"):
    """Skips a record, because it is the viewer's own prompt."""

    agent: str
    link: str
    session: str
    seq: int


class TerminalNames(msgspec.Struct, frozen=True, tag="terminals"):
    """The viewer's names for terminals that have other ids in the session's records."""

    agent: str
    link: str
    session: str
    names: dict[str, str]


class Direct(msgspec.Struct, frozen=True, tag="direct"):
    """A message for this viewer only, to be sent after a record of a session."""

    agent: str
    link: str
    line: bytes
    session: str | None = None
    after: int = 0
    opens: bool = False
    """Whether it is the answer to a request that opened the session."""


class LinkClosed(msgspec.Struct, frozen=True, tag="closed"):
    """The owner has closed the viewer of a link."""

    agent: str
    link: str
    reason: str


class Joined(msgspec.Struct, frozen=True, tag="joined"):
    """The sender has started, or has discovered the receiver."""

    agent: str


class Missed(msgspec.Struct, frozen=True, tag="missed"):
    """Messages for the receiver were dropped, so it must read their facts from the database."""

    agent: str


class Announced(msgspec.Struct, frozen=True, tag="announced"):
    """The list entry of a session of the sender changed, or the session was deleted."""

    agent: str
    session: str
    header: bytes = b""
    described: bytes = b""
    is_prompted: bool = False
    is_deleted: bool = False


class Labelled(msgspec.Struct, frozen=True, tag="labelled"):
    """The label of a session changed. The receiver reads it, because messages of two nodes have no order."""

    agent: str
    session: str


class BringLogin(msgspec.Struct, frozen=True, tag="login"):
    """A browser returned from a login that an agent of the receiver waits for."""

    agent: str
    id: str
    back: dict[str, str]
    """The parameters of the redirect."""


class LoginBrought(msgspec.Struct, frozen=True, tag="brought"):
    """The receiver passed the redirect's parameters to its agent."""

    agent: str
    id: str
    server: str | None
    """None if no login waits for it."""
    is_taken: bool = False


class OpenQuestion(msgspec.Struct, frozen=True, tag="question"):
    """A user opened an approval link to a question of the receiver, and may have chosen an option."""

    agent: str
    id: str
    hash: bytes
    """The hash of the link's code."""
    option: str | None = None


class QuestionOpened(msgspec.Struct, frozen=True, tag="opened"):
    """The state of a link's question after the option was applied."""

    agent: str
    id: str
    described: bytes | None
    """None if there is no such link."""
    is_offered: bool = True


FromOwner: TypeAlias = Bound | Unbound | Skip | TerminalNames | Direct | LinkClosed
CodeRequest: TypeAlias = OpenQuestion | BringLogin
CodeAnswer: TypeAlias = QuestionOpened | LoginBrought
FromPeer: TypeAlias = Joined | Missed | Announced | Labelled
ForAgent: TypeAlias = OpenLink | ViewerLine | CloseLink | FromOwner | FromPeer | CodeRequest
NodeMessage: TypeAlias = ForAgent | CodeAnswer

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(NodeMessage).decode
