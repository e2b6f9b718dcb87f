"""Statements of an agent about a conversation: notices, and that a message which it began is void.

A notice is live and no part of the history. ACP has the update `notice` for it, for clients with the capability
`session.notices`. The pinned schema has the update and not yet the capability, so that is declared here; with a schema
that has it, `SessionCapabilitiesWithNotices` and `read_client_capabilities` go, and `takes_notices` reads the field.

A message becomes void when the model breaks off and is asked again. ACP has nothing for that. A chunk without words, of
the same message and with `_meta` of `dragoman/void`, says so: it is part of the history, as the void words are.
"""

import textwrap
import uuid
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.protocol import v1

VOID = "dragoman/void"


class NoticeCapabilities(msgspec.Struct):
    """Support for notices, which has no parts."""


class SessionCapabilitiesWithNotices(v1.ClientSessionCapabilities, kw_only=True, omit_defaults=True):
    """A client's capabilities for sessions, notices included."""

    notices: NoticeCapabilities | None = None


class _Capabilities(msgspec.Struct):
    notices: dict[str, Any] | None = None


class _Client(msgspec.Struct):
    session: _Capabilities | None = None


class _Initialize(msgspec.Struct, rename="camel"):
    client_capabilities: _Client | None = None


_decode = msgspec.json.Decoder(_Initialize).decode


def read_client_capabilities(request: v1.InitializeRequest, params: Raw) -> v1.ClientCapabilities:
    """Return a client's capabilities, with that for notices, which the type of the request does not have."""
    capabilities = request.client_capabilities
    try:
        session = (_decode(params).client_capabilities or _Client()).session
    except msgspec.DecodeError:  # a field of another type than expected counts as not given
        return capabilities
    if session is None or session.notices is None:
        return capabilities
    known = capabilities.session or v1.ClientSessionCapabilities()
    return msgspec.structs.replace(capabilities, session=with_notices(known))


def with_notices(session: v1.ClientSessionCapabilities) -> SessionCapabilitiesWithNotices:
    """Return the capabilities with notices among them."""
    return SessionCapabilitiesWithNotices(**msgspec.structs.asdict(session), notices=NoticeCapabilities())


def takes_notices(client: v1.ClientCapabilities) -> bool:
    """Whether a client shows notices."""
    return isinstance(client.session, SessionCapabilitiesWithNotices) and client.session.notices is not None


def words_of(notice: v1.Notice) -> str:
    """Return a notice as one text."""
    return f"{notice.title}\n{notice.description}" if notice.description else notice.title


def as_thought(notice: v1.Notice) -> v1.AgentThoughtChunk:
    """Return the update for a client without notices: clients do not take thoughts for the answer.

    A description is plain text, which may be foreign; clients show thoughts as Markdown, where an indented text stays
    as it is.
    """
    words = [notice.title, textwrap.indent(notice.description, " " * 4)] if notice.description else [notice.title]
    block = v1.TextContent(text="".join(f"{part}\n\n" for part in words))
    return v1.AgentThoughtChunk(content=block, message_id=str(uuid.uuid4()))


def void_chunk(message_id: str) -> v1.AgentMessageChunk:
    """Return the update that makes a message void."""
    return v1.AgentMessageChunk(content=v1.TextContent(text=""), message_id=message_id, meta={VOID: True})


def is_void(chunk: v1.AgentMessageChunk) -> bool:
    """Whether a chunk makes its message void."""
    return chunk.meta is not None and chunk.meta.get(VOID) is True
