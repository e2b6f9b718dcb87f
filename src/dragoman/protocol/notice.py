"""Notices: statements of an agent about a conversation.

A notice is live and not part of the history. ACP has the update `notice` for clients with the capability
`session.notices`. Other clients receive it as a thought.
"""

import textwrap
import uuid

from dragoman.protocol import v1
from dragoman.protocol.extensions import NOTICE


def supports_notices(client: v1.ClientCapabilities) -> bool:
    """Return whether a client supports notices."""
    return client.session is not None and client.session.notices is not None


def notice_text(notice: v1.Notice) -> str:
    """Return a notice as one text."""
    return f"{notice.title}\n{notice.description}" if notice.description else notice.title


def notice_key(notice: v1.Notice) -> str | None:
    """Return the key of a notice. A later notice with the same key replaces it."""
    key = (notice.meta or {}).get(NOTICE)
    return key if isinstance(key, str) else None


def as_thought(notice: v1.Notice) -> v1.AgentThoughtChunk:
    """Return the update for a client without notices. Clients do not show a thought as the answer.

    A description is plain text, possibly from elsewhere. Clients show thoughts as Markdown, which leaves indented text
    unchanged. Notices with the same key are one thought.
    """
    parts = [notice.title, textwrap.indent(notice.description, " " * 4)] if notice.description else [notice.title]
    block = v1.TextContent(text="".join(f"{part}\n\n" for part in parts))
    return v1.AgentThoughtChunk(content=block, message_id=notice_key(notice) or str(uuid.uuid4()))
