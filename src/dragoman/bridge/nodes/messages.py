"""The messages between nodes, which are rows of `dragoman_message`.

A link connects a viewer on one node with the sessions that another node owns. The viewer's node opens the link and
forwards the viewer's messages unchanged. The owner has a viewer object for the link and sends back the messages that
only this viewer receives. Journal records are not sent, because every node reads them from the database.
"""

from typing import TypeAlias

import msgspec

from dragoman.bridge.translation import Version
from dragoman.bridge.viewers import ViewerAccess


class _OfLink(msgspec.Struct, frozen=True):
    agent: str
    link: str


class _OfSession(_OfLink, frozen=True):
    session: str


class OpenLink(_OfLink, frozen=True, tag="open"):
    """Opens a link: the owner of a session creates a viewer for it."""

    initialize: bytes
    """The viewer's params of `initialize`."""
    access: ViewerAccess
    over_http: bool
    address: str | None = None
    """The address at which the viewer reaches its bridge."""
    losses: int = 0
    """How often the viewer's node has given up its links to the owner. Links from before a loss are void."""


class ViewerLine(_OfLink, frozen=True, tag="line"):
    """A message from the viewer."""

    line: bytes


class CloseLink(_OfLink, frozen=True, tag="close"):
    """The viewer has left."""


class Bound(_OfSession, frozen=True, tag="bound"):
    """The viewer subscribed to a session, after a record of its journal."""

    key: int
    header: bytes
    end: int
    """The last committed record."""
    cursor: int
    has_history: bool
    versions: list[tuple[int, Version]]


class Unbound(_OfSession, frozen=True, tag="unbound"):
    """The viewer's subscription to a session ended."""


class Skip(_OfSession, frozen=True, tag="skip"):
    """Skips a record, because it is the viewer's own prompt."""

    seq: int


class TerminalNames(_OfSession, frozen=True, tag="terminals"):
    """The viewer's names for terminals that have other ids in the session's records."""

    names: dict[str, str]


class Direct(_OfLink, frozen=True, tag="direct"):
    """A message for this viewer only, to be sent after a record of a session."""

    line: bytes
    session: str | None = None
    after: int = 0
    opens: bool = False
    """Whether it is the answer to a request that opened the session."""


class LinkClosed(_OfLink, frozen=True, tag="closed"):
    """The owner has closed the viewer of a link."""

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
