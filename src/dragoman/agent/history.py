"""The replay of a session's updates from its log, and the restoration of its state."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec

from dragoman.agent.hook_calls import HookCalls
from dragoman.agent.session import Session
from dragoman.agent.session_memory import ClientChoices, turn_end
from dragoman.agent.usage import TokenUsage
from dragoman.errors import LogFailed
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook
from dragoman.protocol.update_lines import update_lines
from dragoman.store import Log, Record

Replay = Callable[[Sequence[memoryview]], Awaitable[None]]

_decode_settings = msgspec.json.Decoder(dict[str, Any]).decode
_decode_title = msgspec.json.Decoder(str).decode
_decode_choices = msgspec.json.Decoder(ClientChoices, dec_hook=decode_hook).decode


_SUBAGENT = b'"update":{"sessionUpdate":"subagent_update"'


class _Params(msgspec.Struct):
    update: dict[str, Any]


class _UpdateLine(msgspec.Struct):
    params: _Params


class _TurnEvent(msgspec.Struct):
    event: str
    usage: TokenUsage | None = None
    messages: int | None = None
    state: msgspec.Raw = msgspec.Raw()


_decode_update = msgspec.json.Decoder(_UpdateLine).decode
_decode_turn = msgspec.json.Decoder(_TurnEvent).decode


async def replay(log: Log, send: Replay) -> None:
    """Send every logged update again, in order, as the bytes that were sent first."""
    async for blocks in log.blocks():
        await send([run for block in blocks for run in block.updates()])


async def restore(session: Session, log: Log, hooks: HookCalls, send: Replay | None) -> None:
    """Bring a session back from its log, replaying its updates on the way when `send` is given.

    A turn that was running when its process died is closed: its tool calls that never ended are marked as
    failed, in the log and, with `send`, for the client.
    """
    unfinished_since = 0
    async for blocks in log.blocks():
        if send is not None:
            await send([run for block in blocks for run in block.updates()])
        for record in [record for block in blocks if block.places for record in block.records()]:
            if record.kind == "turn":
                event = _decode_turn(record.data)
                unfinished_since = record.seq if event.event == "start" else 0
                _take_turn(session, event)
            else:
                _take(session, record, hooks)
    session.updates.use(log)
    if log.damage is not None:
        session.notice_later(f"dragoman: {log.damage}")
    if log.failure is not None:
        session.notice_later(f"dragoman: this session can only be read: {log.failure}")
    if unfinished_since:
        await _close_turn(session, log, unfinished_since, send)


async def amend(log: Log, *, title: str | None = None, archived: bool | None = None) -> None:
    """Change the title that the client gave, or whether the session is archived, in the log of a session not live.

    The log is one that was just opened; the change is on the disk when this returns. Raises LogFailed.
    """
    choices = ClientChoices()
    async for blocks in log.blocks():
        for record in [record for block in blocks if block.places for record in block.records()]:
            if record.kind == "client":
                choices = _decode_choices(record.data)
    if title is not None:
        choices = msgspec.structs.replace(choices, titled=True)
        log.title = title
        log.record("title", msgspec.json.encode(title))
        log.append(update_lines(log.header.id, [msgspec.json.encode(v1.SessionInfoUpdate(title=title))]))
    if archived is not None:
        choices = msgspec.structs.replace(choices, archived=archived)
        log.is_archived = archived
    log.record("client", msgspec.json.encode(choices))
    await log.sync()


def _take_turn(session: Session, event: _TurnEvent) -> None:
    memory = session.memory
    memory.usage = event.usage or memory.usage
    if event.messages is not None:
        memory.message_count = event.messages
    if state := bytes(event.state):
        memory.restore_state(state)


def _take(session: Session, record: Record, hooks: HookCalls) -> None:
    match record.kind:
        case "model":
            hooks.take_record(session, bytes(record.data))
        case "config":
            session.settings.restore(_decode_settings(record.data))
        case "title":
            session.memory.title = _decode_title(record.data)
        case "client":
            session.memory.choices = _decode_choices(record.data)
        case _:
            pass


async def _close_turn(session: Session, log: Log, since: int, send: Replay | None) -> None:
    told = log.failure
    reason = "The agent was stopped before this was done."
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
    except LogFailed as failure:
        if failure is not told:
            session.notice_later(f"dragoman: {failure}")
    if send is not None and lines:
        await send([memoryview(lines)])


async def _unfinished(log: Log, since: int) -> tuple[list[str], list[str]]:
    """Return the ids of the tool calls and of the subagents that were begun after a line and never ended."""
    calls: dict[str, None] = {}
    subagents: dict[str, None] = {}
    async for blocks in log.blocks():
        for seq, line in [line for block in blocks if block.last > since for line in block.numbered_lines()]:
            if seq <= since or not line.startswith(b'{"jsonrpc":'):
                continue
            if _SUBAGENT in line:
                _note_subagent(_decode_update(line).params.update, subagents)
            elif b'"tool_call' in line:
                _note_call(_decode_update(line).params.update, calls)
    return list(calls), list(subagents)


def _note_call(update: dict[str, Any], open_calls: dict[str, None]) -> None:
    call_id = update.get("toolCallId")
    if not isinstance(call_id, str):
        return
    if update.get("status") in ("completed", "failed"):
        open_calls.pop(call_id, None)
    elif update.get("sessionUpdate") == "tool_call":
        open_calls[call_id] = None


def _note_subagent(update: dict[str, Any], running: dict[str, None]) -> None:
    if update.get("sessionUpdate") != "subagent_update":
        return
    state: Any = update.get("state")
    if isinstance(state, dict) and cast("dict[str, Any]", state).get("state") == "running":
        running[update["sessionId"]] = None
    else:
        running.pop(update["sessionId"], None)
