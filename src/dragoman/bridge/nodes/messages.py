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


class Announced(msgspec.Struct, frozen=True, tag="announced"):
    """A session of the sender changed, as lists show it, or is no more."""

    agent: str
    session: str
    header: bytes = b""
    described: bytes = b""
    is_prompted: bool = False
    is_deleted: bool = False


class Labelled(msgspec.Struct, frozen=True, tag="labelled"):
    """The label of a session changed."""

    agent: str
    session: str
    label: bytes


FromOwner: TypeAlias = Bound | Unbound | Skip | Direct | LinkClosed
NodeMessage: TypeAlias = OpenLink | ViewerLine | CloseLink | FromOwner | Announced | Labelled

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(NodeMessage).decode
