"""What nodes say to each other, as rows of `dragoman_message`.

A link is one viewer on one node that uses sessions of another. The node of the viewer opens it and passes the viewer's
messages on as they came. The owner has a viewer for it, and passes back what is for that viewer alone; the records of a
journal are not passed on, because every node reads them from the database.
"""

from typing import TypeAlias

import msgspec

from dragoman.bridge.delivery import ViewerAccess
from dragoman.bridge.translation import Version


class OpenLink(msgspec.Struct, frozen=True, tag="open"):
    """A viewer is to be known at the owner of a session."""

    agent: str
    link: str
    initialize: bytes
    """The viewer's params of `initialize`."""
    access: ViewerAccess
    over_http: bool
    address: str | None = None
    """The address at which the viewer reaches its bridge."""


class ViewerLine(msgspec.Struct, frozen=True, tag="line"):
    """A message of the viewer."""

    agent: str
    link: str
    line: bytes


class CloseLink(msgspec.Struct, frozen=True, tag="close"):
    """The viewer has left."""

    agent: str
    link: str


class Bound(msgspec.Struct, frozen=True, tag="bound"):
    """The viewer follows a session, behind a record of its journal."""

    agent: str
    link: str
    session: str
    key: int
    header: bytes
    end: int
    """The last record that is committed."""
    cursor: int
    has_history: bool
    versions: list[tuple[int, Version]]


class Unbound(msgspec.Struct, frozen=True, tag="unbound"):
    """The viewer follows a session no more."""

    agent: str
    link: str
    session: str


class Skip(msgspec.Struct, frozen=True, tag="skip"):
    """A record is the viewer's own prompt, which it is not shown."""

    agent: str
    link: str
    session: str
    seq: int


class TerminalNames(msgspec.Struct, frozen=True, tag="terminals"):
    """The viewer's own names of terminals that have other ids in the records of a session."""

    agent: str
    link: str
    session: str
    names: dict[str, str]


class Direct(msgspec.Struct, frozen=True, tag="direct"):
    """A message for the viewer alone, to be given behind a record of a session."""

    agent: str
    link: str
    line: bytes
    session: str | None = None
    after: int = 0
    request_id: bytes | None = None
    """Its id, if it is a request to the viewer."""
    opens: bool = False
    """Whether it is the answer to a request that opened the session."""
    is_new: bool = False
    """Whether the viewer knows of the session by this message alone."""


class LinkClosed(msgspec.Struct, frozen=True, tag="closed"):
    """The owner has no viewer for a link any more."""

    agent: str
    link: str
    reason: str


class Joined(msgspec.Struct, frozen=True, tag="joined"):
    """The sender has come, or has found the receiver."""

    agent: str


class Missed(msgspec.Struct, frozen=True, tag="missed"):
    """Messages for the receiver were dropped: it reads again what they told."""

    agent: str


class Announced(msgspec.Struct, frozen=True, tag="announced"):
    """A session of the sender changed, as lists show it, or is no more."""

    agent: str
    session: str
    header: bytes = b""
    described: bytes = b""
    is_prompted: bool = False
    is_deleted: bool = False


class Labelled(msgspec.Struct, frozen=True, tag="labelled"):
    """The label of a session changed: the receiver reads it, because messages of two nodes have no order."""

    agent: str
    session: str


class BringLogin(msgspec.Struct, frozen=True, tag="login"):
    """A browser came back from a login that an agent of the receiver waits for."""

    agent: str
    id: str
    back: dict[str, str]
    """The parameters that it brought."""


class LoginBrought(msgspec.Struct, frozen=True, tag="brought"):
    """The agent was given what the browser brought."""

    agent: str
    id: str
    server: str | None
    """None if no login waits for it."""
    is_taken: bool = False


class OpenQuestion(msgspec.Struct, frozen=True, tag="question"):
    """A person opened a link to a question of the receiver, and may have chosen an option."""

    agent: str
    id: str
    hash: bytes
    """Of the code of the link."""
    option: str | None = None


class QuestionOpened(msgspec.Struct, frozen=True, tag="opened"):
    """How the question of a link stands, after the option was taken."""

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
