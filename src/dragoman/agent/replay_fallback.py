"""The lines of a replay for a client that lacks a capability: the log has updates that it must not be sent.

Such updates are rare, and lines are copied undecoded: a run of lines is only taken apart when a search finds one in it.
"""

import re
from collections.abc import Callable, Iterator

import msgspec

from dragoman.agent.compaction import as_message
from dragoman.agent.session import SessionClient
from dragoman.agent.subagent import as_tool_call
from dragoman.protocol import v1
from dragoman.protocol.decode import ENCODER
from dragoman.protocol.unions import decode_hook
from dragoman.protocol.update_lines import update_lines

Fallback = Callable[[memoryview], bytes | memoryview]

_COMPACTION = b'"update":{"sessionUpdate":"compaction_'
_SUBAGENTS = (b'"update":{"sessionUpdate":"subagent_', b'"update":{"sessionUpdate":"session_message')


class _Params(msgspec.Struct, rename="camel"):
    session_id: str
    update: v1.SessionUpdate


class _Line(msgspec.Struct):
    params: _Params


_decode = msgspec.json.Decoder(_Line, dec_hook=decode_hook).decode


def fallback_for(client: SessionClient) -> Fallback | None:
    """Return the function that changes the runs of a replay for a client; None for one that is sent every line."""
    marks = [] if client.shows_compaction else [_COMPACTION]
    if not client.shows_subagents:
        marks += _SUBAGENTS
    if not marks:
        return None
    search = re.compile(b"|".join(map(re.escape, marks))).search
    return lambda run: run if search(run) is None else b"".join(_changed(bytes(run), search))


def _changed(run: bytes, search: Callable[[bytes], re.Match[bytes] | None]) -> Iterator[bytes]:
    for line in run.splitlines(keepends=True):
        if search(line) is None:
            yield line
            continue
        params = _decode(line).params
        match params.update:
            case v1.CompactionUpdate() as update:
                if (message := as_message(update)) is not None:
                    yield update_lines(params.session_id, [ENCODER.encode(message)])
            case v1.SubagentUpdate() | v1.SessionMessage() as update:
                call = as_tool_call(update, params.session_id)
                yield update_lines(params.session_id, [ENCODER.encode(call)])
            case v1.CompactionSummaryChunk() | v1.SessionMessageChunk():
                pass
            case _:
                yield line  # the words are inside the update, of a tool that talked about updates
