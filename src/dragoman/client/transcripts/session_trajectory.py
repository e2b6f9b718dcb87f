"""A session as a list of steps, for evaluations and training. It is read from a recording or a loaded session.

A step is a message of the user, or one move of the agent: its reasoning, its text, and then its tool calls with their
results. Text after a tool call begins the next step, because the agent has seen the result by then.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, cast

import msgspec

from dragoman.client.sessions.session import Session
from dragoman.client.sessions.tool_call import ToolCallState, merge
from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import (
    INITIALIZE,
    SESSION_FORK,
    SESSION_LOAD,
    SESSION_NEW,
    SESSION_PROMPT,
    SESSION_REQUEST_PERMISSION,
    SESSION_RESUME,
)
from dragoman.protocol.turn_usage import usage_from_meta
from dragoman.protocol.void_message import is_void
from dragoman.recording.trajectory import TrajectoryRecord, read_trajectory

_Object = dict[str, Any]
_OPENING = {method.name for method in (SESSION_NEW, SESSION_LOAD, SESSION_RESUME, SESSION_FORK)}
_OPENED_BY_ID = {SESSION_LOAD.name, SESSION_RESUME.name}


class TrajectoryStep(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the user, one move of the agent, or one error message of the system."""

    source: Literal["user", "agent", "system"]
    blocks: tuple[v1.ContentBlock, ...] = ()
    """The content of the message."""
    thought: str = ""
    calls: tuple[ToolCallState, ...] = ()
    time_ms: int | None = None
    """The start of the step in milliseconds since 1970, or None if unknown."""
    is_replayed: bool = False
    """Whether the step is older and was replayed by a load."""
    usage: v1.Usage | None = None
    """The tokens of the whole turn. Only the last step of a turn has it."""
    stop_reason: str | None = None
    """The reason why the turn ended. Only the last step of a turn has it."""


class SessionTrajectory(msgspec.Struct, frozen=True, kw_only=True):
    """A session, from its first message to its last."""

    session_id: str
    cwd: str
    agent: str
    version: str
    model: str | None
    """The value of the model option, if the agent has one."""
    steps: tuple[TrajectoryStep, ...]
    cost: v1.Cost | None = None

    def __repr__(self) -> str:
        return f"<SessionTrajectory {self.session_id} of {self.agent} {self.version}, {len(self.steps)} steps>"


def read_sessions(path: str | os.PathLike[str]) -> list[SessionTrajectory]:
    """Return the sessions of a recording in the order in which they were opened. Raises TrajectoryError."""
    return group_by_session(read_trajectory(path))


def group_by_session(records: Iterable[TrajectoryRecord]) -> list[SessionTrajectory]:
    """Return the sessions of these records in the order in which they were opened."""
    reader = _RecordingReader()
    for record in _as_v1(records):
        reader.add(record)
    return [session.finish(*reader.agent) for session in reader.sessions.values()]


def trajectory_from_session(session: Session, info: v1.Implementation | None = None) -> SessionTrajectory:
    """Return the trajectory of a loaded session, from its history. `info` names its agent."""
    builder = _SessionBuilder(session.id, session.cwd)
    builder.read_options(session.config_options)
    builder.is_replaying = True
    for event in session.history:
        update = getattr(event, "update", None)
        if update is not None:
            builder.add_update(update, None)
    builder.cost = session.usage.cost if session.usage else None
    trajectory = builder.finish(*_names(info))
    # Everything was replayed, so nothing in this trajectory is a copy of another part.
    return msgspec.structs.replace(
        trajectory, steps=tuple(msgspec.structs.replace(step, is_replayed=False) for step in trajectory.steps)
    )


def _names(info: v1.Implementation | None) -> tuple[str, str]:
    return (info.name, info.version) if info else ("agent", "unknown")


def _as_v1(records: Iterable[TrajectoryRecord]) -> Iterator[TrajectoryRecord]:
    """Yield the records as messages of ACP version 1. The answer to `initialize` shows the recorded version."""
    before: list[TrajectoryRecord] = []
    rest = iter(records)
    for record in rest:
        before.append(record)
        answer = _object(record.message.get("result"))
        if "protocolVersion" in answer:
            is_v2 = answer["protocolVersion"] == 2 and "info" in answer
            yield from _translated([*before, *rest]) if is_v2 else before
            break
    else:
        yield from before
    yield from rest


def _translated(records: Iterable[TrajectoryRecord]) -> Iterator[TrajectoryRecord]:
    from dragoman.protocol.translate.recording import RecordedTranslation

    translation = RecordedTranslation()
    for record in records:
        if record.kind == "sent":
            sent, received = translation.sent(record.message), []
        elif record.kind == "received":
            received, sent = translation.received(record.message)
        else:
            yield record
            continue
        yield from (msgspec.structs.replace(record, kind="received", message=each) for each in received)
        yield from (msgspec.structs.replace(record, kind="sent", message=each) for each in sent)


class _RecordingReader:
    """Finds the sessions in the messages of both sides.

    The client's requests open sessions and begin turns, the agent's notifications fill the steps, and its answers end
    turns. `_open` has the unanswered requests by id.
    """

    def __init__(self) -> None:
        self.agent = _names(None)
        self.sessions: dict[str, _SessionBuilder] = {}
        self._open: dict[str | int, _Object] = {}

    def add(self, record: TrajectoryRecord) -> None:
        message = record.message
        if record.kind == "sent" and record.method is not None:
            self._add_request(message, record.time)
        elif record.kind == "received" and record.method is not None:
            self._add_incoming(record)
        elif record.kind == "received" and message.get("id") in self._open:
            self._add_answer(self._open.pop(message["id"]), message, record.time)

    def _add_request(self, message: _Object, time_ms: int) -> None:
        if "id" in message:
            self._open[message["id"]] = message
        params = _object(message.get("params"))
        session_id = params.get("sessionId")
        if message["method"] in _OPENED_BY_ID and isinstance(session_id, str):
            builder = self._builder(session_id, str(params.get("cwd", "")))
            builder.is_replaying = message["method"] == SESSION_LOAD.name
        elif message["method"] == SESSION_PROMPT.name and isinstance(session_id, str):
            self._builder(session_id).begin_turn(_prompt_blocks(params), time_ms)

    def _add_incoming(self, record: TrajectoryRecord) -> None:
        try:
            notification = record.update
            if notification is not None:
                self._builder(notification.session_id).add_update(notification.update, record.time)
            elif record.method == SESSION_REQUEST_PERMISSION.name:
                params = msgspec.json.encode(record.message.get("params"))
                request = decode_params(SESSION_REQUEST_PERMISSION, params, lenient=True)
                self._builder(request.session_id).add_call(request.tool_call, record.time)
        except InvalidParamsError:
            return  # an invalid message cannot belong to a step

    def _add_answer(self, request: _Object, message: _Object, time_ms: int) -> None:
        params, result = _object(request.get("params")), _object(message.get("result"))
        method = request["method"]
        if method == INITIALIZE.name:
            info = _object(result.get("agentInfo"))
            self.agent = (str(info.get("name", self.agent[0])), str(info.get("version", self.agent[1])))
        elif method == SESSION_PROMPT.name and isinstance(params.get("sessionId"), str):
            self._builder(params["sessionId"]).end_turn(message, time_ms)
        elif method in _OPENING and "result" in message:
            session_id = params.get("sessionId") if method in _OPENED_BY_ID else result.get("sessionId")
            if isinstance(session_id, str):
                builder = self._builder(session_id, str(params.get("cwd", "")))
                builder.is_replaying = False
                builder.read_raw_options(result.get("configOptions"))

    def _builder(self, session_id: str, cwd: str = "") -> "_SessionBuilder":
        builder = self.sessions.setdefault(session_id, _SessionBuilder(session_id, cwd))
        builder.cwd = builder.cwd or cwd
        return builder


class _Step:
    """A step in progress. Content is stored with its message id, because an agent may withdraw a message."""

    def __init__(self, source: Literal["user", "agent", "system"], time_ms: int | None, *, is_replayed: bool) -> None:
        self.source: Literal["user", "agent", "system"] = source
        self.time_ms = time_ms
        self.is_replayed = is_replayed
        self.blocks: list[tuple[str | None, v1.ContentBlock]] = []
        self.thought: list[str] = []
        self.calls: list[str] = []
        self.usage: v1.Usage | None = None
        self.stop_reason: str | None = None

    def finish(self, calls: dict[str, ToolCallState]) -> TrajectoryStep:
        return TrajectoryStep(
            source=self.source,
            blocks=tuple(_joined([block for _, block in self.blocks])),
            thought="".join(self.thought),
            calls=tuple(calls[each] for each in self.calls),
            time_ms=self.time_ms,
            is_replayed=self.is_replayed,
            usage=self.usage,
            stop_reason=self.stop_reason,
        )


class _SessionBuilder:
    """Builds the steps of one session."""

    def __init__(self, session_id: str, cwd: str) -> None:
        self.session_id = session_id
        self.cwd = cwd
        self.cost: v1.Cost | None = None
        self.is_replaying = False
        self._model: str | None = None
        self._in_turn = False
        self._steps: list[_Step] = []
        self._calls: dict[str, ToolCallState] = {}

    def begin_turn(self, blocks: Sequence[v1.ContentBlock], time_ms: int) -> None:
        self._in_turn = True
        step = self._add("user", time_ms)
        step.blocks += [(None, block) for block in blocks]

    def end_turn(self, answer: _Object, time_ms: int) -> None:
        self._in_turn = False
        result, error = _object(answer.get("result")), _object(answer.get("error"))
        if error:
            text = v1.TextContent(text=f"The turn failed: {error.get('message', 'no reason given')}")
            self._add("system", time_ms).blocks.append((None, text))
            return
        step = self._steps[-1] if self._steps and self._steps[-1].source == "agent" else self._add("agent", time_ms)
        reason = result.get("stopReason")
        step.stop_reason = reason if isinstance(reason, str) else None
        try:
            step.usage = msgspec.convert(result.get("usage"), v1.Usage | None) or usage_from_meta(result.get("_meta"))
        except msgspec.ValidationError:
            step.usage = None

    def add_update(self, update: v1.SessionUpdate, time_ms: int | None) -> None:
        match update:
            case v1.UserMessageChunk(content=block):
                # During a turn this is the prompt sent back, which `begin_turn` has already added.
                if not self._in_turn or self.is_replaying:
                    self._add_user_chunk(block, update.message_id, time_ms)
            case v1.AgentMessageChunk() if is_void(update):
                for step in self._steps:
                    step.blocks = [each for each in step.blocks if each[0] is None or each[0] != update.message_id]
            case v1.AgentMessageChunk(content=block):
                self._message_step(time_ms).blocks.append((update.message_id, block))
            case v1.AgentThoughtChunk(content=v1.TextContent(text=text)):
                self._message_step(time_ms).thought.append(text)
            case v1.ToolCall() | v1.ToolCallProgress():
                self.add_call(update, time_ms)
            case v1.ConfigOptionUpdate(config_options=options):
                self.read_options(options)
            case v1.UsageUpdate(cost=cost):
                self.cost = cost or self.cost
            case _:
                pass

    def add_call(self, update: v1.ToolCall | v1.ToolCallUpdate, time_ms: int | None) -> None:
        is_new = update.tool_call_id not in self._calls
        self._calls[update.tool_call_id] = merge(self._calls.get(update.tool_call_id), update)
        if is_new:
            self._agent_step(time_ms).calls.append(update.tool_call_id)

    def read_options(self, options: Iterable[v1.SessionConfigOption]) -> None:
        for option in options:
            if isinstance(option, v1.SessionConfigSelect) and option.category == "model":
                self._model = option.current_value

    def read_raw_options(self, options: object) -> None:
        for option in cast("list[object]", options) if isinstance(options, list) else []:
            members = _object(option)
            if members.get("category") == "model" and isinstance(members.get("currentValue"), str):
                self._model = members["currentValue"]

    def finish(self, agent: str, version: str) -> SessionTrajectory:
        return SessionTrajectory(
            session_id=self.session_id,
            cwd=self.cwd,
            agent=agent,
            version=version,
            model=self._model,
            steps=tuple(step.finish(self._calls) for step in self._steps),
            cost=self.cost,
        )

    def _add_user_chunk(self, block: v1.ContentBlock, message_id: str | None, time_ms: int | None) -> None:
        step = self._steps[-1] if self._steps else None
        if step is None or step.source != "user" or (step.blocks and step.blocks[-1][0] != message_id):
            step = self._add("user", time_ms)
        step.blocks.append((message_id, block))

    def _message_step(self, time_ms: int | None) -> _Step:
        step = self._agent_step(time_ms)
        return self._add("agent", time_ms) if step.calls else step

    def _agent_step(self, time_ms: int | None) -> _Step:
        last = self._steps[-1] if self._steps else None
        return last if last and last.source == "agent" and last.stop_reason is None else self._add("agent", time_ms)

    def _add(self, source: Literal["user", "agent", "system"], time_ms: int | None) -> _Step:
        step = _Step(source, time_ms, is_replayed=self.is_replaying)
        self._steps.append(step)
        return step


def _joined(blocks: Iterable[v1.ContentBlock]) -> list[v1.ContentBlock]:
    """Return the blocks with consecutive texts joined."""
    joined: list[v1.ContentBlock] = []
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, v1.TextContent):
            texts.append(block.text)
            continue
        if texts:
            joined.append(v1.TextContent(text="".join(texts)))
            texts = []
        joined.append(block)
    if texts:
        joined.append(v1.TextContent(text="".join(texts)))
    return joined


def _prompt_blocks(params: _Object) -> list[v1.ContentBlock]:
    try:
        return decode_params(SESSION_PROMPT, msgspec.json.encode(params), lenient=True).prompt
    except InvalidParamsError:
        return []


def _object(value: object) -> _Object:
    return cast("_Object", value) if isinstance(value, dict) else {}
