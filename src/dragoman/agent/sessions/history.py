"""Replays a session's updates from its log, and restores its state."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from dragoman.agent.program import AgentProgram
from dragoman.agent.sessions.session import Session, SessionClient
from dragoman.agent.sessions.session_memory import ClientChoices, turn_end
from dragoman.agent.turns.compaction import as_message
from dragoman.agent.turns.subagent import as_tool_call
from dragoman.agent.turns.usage import TokenUsage
from dragoman.errors import LogError
from dragoman.protocol import v1
from dragoman.protocol.decode import ENCODER
from dragoman.protocol.unions import decode_hook
from dragoman.protocol.update_lines import decode_update_line, update_lines
from dragoman.store import History, Record

Replay = Callable[[Sequence[memoryview]], Awaitable[None]]

_decode_settings = msgspec.json.Decoder(dict[str, Any]).decode
_decode_title = msgspec.json.Decoder(str).decode
_decode_choices = msgspec.json.Decoder(ClientChoices, dec_hook=decode_hook).decode


_SUBAGENT = b'"update":{"sessionUpdate":"subagent_update"'


class _TurnEvent(msgspec.Struct):
    event: str
    usage: TokenUsage | None = None
    messages: int | None = None
    state: msgspec.Raw = msgspec.Raw()


_decode_turn = msgspec.json.Decoder(_TurnEvent).decode


async def replay(log: History, send: Replay) -> None:
    """Send every logged update again, in order, with the same bytes as the first time."""
    async for blocks in log.blocks():
        await send([run for block in blocks for run in block.updates()])


async def restore(session: Session, log: History, program: AgentProgram, send: Replay | None) -> None:
    """Restore a session from its log. If `send` is given, replay its updates at the same time.

    If the process died during a turn, the turn is closed. Its unfinished tool calls are marked as failed in the log
    and, with `send`, for the client.
    """
    # The number of the last turn's start, until its end is read. It remains set if the process died during the turn.
    unfinished_since = 0
    async for blocks in log.blocks():
        if send is not None:
            await send([run for block in blocks for run in block.updates()])
        for record in [record for block in blocks if block.places for record in block.records()]:
            if record.kind == "turn":
                event = _decode_turn(record.data)
                unfinished_since = record.seq if event.event == "start" else 0
                _restore_turn(session, event)
            else:
                _restore_record(session, record, program)
    session.updates.use_log(log)
    if log.damage is not None:
        session.notice_later(f"dragoman: {log.damage}")
    if log.failure is not None:
        session.notice_later(f"dragoman: this session is read-only: {log.failure}")
    if unfinished_since:
        await _close_turn(session, log, unfinished_since, send)


async def amend(log: History, *, title: str | None = None, archived: bool | None = None) -> None:
    """Change the client's title or the archived state in the log of a session that is not live.

    `log` must have just been opened. When this returns, the change is on disk. Raises LogError.
    """
    choices = ClientChoices()
    async for blocks in log.blocks():
        for record in [record for block in blocks if block.places for record in block.records()]:
            if record.kind == "client":
                choices = _decode_choices(record.data)
    if title is not None:
        choices = msgspec.structs.replace(choices, titled=True)
        log.facts.title = title
        log.record("title", msgspec.json.encode(title))
        log.append(update_lines(log.header.id, [msgspec.json.encode(v1.SessionInfoUpdate(title=title))]))
    if archived is not None:
        choices = msgspec.structs.replace(choices, archived=archived)
        log.facts.is_archived = archived
    log.record("client", msgspec.json.encode(choices))
    await log.sync()


def _restore_turn(session: Session, event: _TurnEvent) -> None:
    memory = session.memory
    memory.usage = event.usage or memory.usage
    if event.messages is not None:
        memory.message_count = event.messages
    if state := bytes(event.state):
        memory.restore_state(state)


def _restore_record(session: Session, record: Record, program: AgentProgram) -> None:
    match record.kind:
        case "model":
            program.restore_record(session, bytes(record.data))
        case "config":
            session.settings.restore(_decode_settings(record.data))
        case "title":
            session.memory.title = _decode_title(record.data)
        case "client":
            session.memory.choices = _decode_choices(record.data)
        case _:
            pass


async def _close_turn(session: Session, log: History, since: int, send: Replay | None) -> None:
    known_failure = log.failure
    reason = "The agent stopped before this finished."
    end = v1.ToolCallProgress(
        tool_call_id="",
        status="failed",
        content=[v1.Content(content=v1.TextContent(text=reason))],
        raw_output={"error": reason},
    )
    calls, subagents = await _unfinished(log, since)
    ends = [msgspec.json.encode(msgspec.structs.replace(end, tool_call_id=call_id)) for call_id in calls]
    stopped = v1.StateUpdate(state="idle", stop_reason="cancelled")
    ends += [msgspec.json.encode(v1.SubagentUpdate(session_id=each, state=stopped)) for each in subagents]
    lines = update_lines(session.id, ends) if ends else b""
    try:
        if lines:
            log.append(lines)
        log.record("turn", turn_end(session.memory, "cancelled"))
        written = log.flush()
        if written is not None:
            await written
    except LogError as failure:
        if failure is not known_failure:
            session.notice_later(f"dragoman: {failure}")
    if send is not None and lines:
        await send([memoryview(lines)])


async def _unfinished(log: History, since: int) -> tuple[list[str], list[str]]:
    """Return the IDs of the tool calls and subagents that started after a line and never ended."""
    calls: dict[str, None] = {}
    subagents: dict[str, None] = {}
    async for blocks in log.blocks():
        for seq, line in [line for block in blocks if block.last > since for line in block.numbered_lines()]:
            if seq <= since or not line.startswith(b'{"jsonrpc":'):
                continue
            if _SUBAGENT in line or b'"tool_call' in line:
                _track(decode_update_line(line).update, calls, subagents)
    return list(calls), list(subagents)


def _track(update: v1.SessionUpdate, open_calls: dict[str, None], running: dict[str, None]) -> None:
    """Track the start or the end of a tool call or a subagent."""
    match update:
        case v1.ToolCall() | v1.ToolCallProgress():
            if update.status in ("completed", "failed"):
                open_calls.pop(update.tool_call_id, None)
            elif isinstance(update, v1.ToolCall):
                open_calls[update.tool_call_id] = None
        case v1.SubagentUpdate(state=v1.StateUpdate(state="running")):
            running[update.session_id] = None
        case v1.SubagentUpdate():
            running.pop(update.session_id, None)
        case _:
            pass


# Clients that lack a capability must not receive some updates of the log. These updates are rare, and lines are copied
# undecoded, so a run of lines is only split if a search finds one of them.

Fallback = Callable[[memoryview], bytes | memoryview]

_COMPACTION = b'"update":{"sessionUpdate":"compaction_'
_SUBAGENTS = (b'"update":{"sessionUpdate":"subagent_', b'"update":{"sessionUpdate":"session_message')


def fallback_for(client: SessionClient) -> Fallback | None:
    """Return the function that converts the runs of a replay for a client, or None if it supports every update."""
    marks = [] if client.shows_compaction else [_COMPACTION]
    if not client.shows_subagents:
        marks += _SUBAGENTS
    if not marks:
        return None
    search = re.compile(b"|".join(map(re.escape, marks))).search
    return lambda run: run if search(run) is None else b"".join(_convert(bytes(run), search))


def _convert(run: bytes, search: Callable[[bytes], re.Match[bytes] | None]) -> Iterator[bytes]:
    for line in run.splitlines(keepends=True):
        if search(line) is None:
            yield line
            continue
        params = decode_update_line(line)
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
                yield line  # the searched text is only inside the update
