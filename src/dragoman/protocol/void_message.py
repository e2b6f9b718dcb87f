"""A message that its agent declares void.

A message becomes void when the model stops and the request is repeated. ACP has no update for that. A chunk without
text, of the same message and with `dragoman/void` in its `_meta`, declares it void. It is part of the history, like the
void text.
"""

from dragoman.protocol import v1

VOID = "dragoman/void"


def void_chunk(message_id: str) -> v1.AgentMessageChunk:
    """Return the update that declares a message void."""
    return v1.AgentMessageChunk(content=v1.TextContent(text=""), message_id=message_id, meta={VOID: True})


def is_void(chunk: v1.AgentMessageChunk) -> bool:
    """Return whether a chunk declares its message void."""
    return chunk.meta is not None and chunk.meta.get(VOID) is True
