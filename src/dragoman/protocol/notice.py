"""Statements of an agent about a conversation: notices, and that a message which it began is void.

A notice is live and no part of the history. ACP has the update `notice` for it, for clients with the capability
`session.notices`; other clients get it as a thought.

A message becomes void when the model breaks off and is asked again. ACP has nothing for that. A chunk without words, of
the same message and with `_meta` of `dragoman/void`, says so: it is part of the history, as the void words are.
"""

import textwrap
import uuid

from dragoman.protocol import v1

VOID = "dragoman/void"

ECHO = "dragoman/echo"
"""The key of a client's `_meta` by which it wants its own prompts told back, with the ids of their messages."""

CALLS = "dragoman/tool_call"
"""The key of `_meta` for the end of one tool call: an agent names its extension method there, `{"cancel": METHOD}`, and
a client says that it offers the person to end one, `{"cancel": true}`."""

TERMINALS = "dragoman/terminal"
"""The same for one command that the agent runs: the end of its terminal, as version 2 has it."""

CONNECT_MODEL = "_dragoman/models/connect"
"""The extension method of our agent that takes the key of a model."""


def takes_notices(client: v1.ClientCapabilities) -> bool:
    """Whether a client shows notices."""
    return client.session is not None and client.session.notices is not None


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
