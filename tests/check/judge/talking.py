"""Short notation for conversations, row by row."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from dragoman.check import AgentMemory, Judge, RecordedConversation, Side

STEP_S = 0.01
"""The time between two rows."""


class Row(NamedTuple):
    """A line or an event. `after_s` is the time before it."""

    side: Side
    line: bytes = b""
    event: str = ""
    after_s: float = STEP_S


Talk = list[Row]


def line(side: Side, message: dict[str, Any], after_s: float = STEP_S) -> Row:
    return Row(side, json.dumps({"jsonrpc": "2.0"} | message).encode(), after_s=after_s)


def raw(side: Side, text: str | bytes) -> Row:
    return Row(side, text.encode() if isinstance(text, str) else text)


def event(side: Side, name: str, after_s: float = STEP_S) -> Row:
    return Row(side, event=name, after_s=after_s)


def ask(id_: Any, method: str, params: Any = None, side: Side = "client") -> Row:
    return line(side, {"id": id_, "method": method, "params": {} if params is None else params})


def notify(method: str, params: Any = None, side: Side = "client") -> Row:
    return line(side, {"method": method, "params": {} if params is None else params})


def respond(id_: Any, result: Any = None, side: Side = "agent", after_s: float = STEP_S) -> Row:
    return line(side, {"id": id_, "result": {} if result is None else result}, after_s)


def refuse(id_: Any, code: int = -32603, side: Side = "agent", after_s: float = STEP_S) -> Row:
    return line(side, {"id": id_, "error": {"code": code, "message": "no"}}, after_s)


def initialize(agent: dict[str, Any] | None = None, client: dict[str, Any] | None = None, **answer: Any) -> Talk:
    return [
        ask(
            "i",
            "initialize",
            {
                "protocolVersion": 1,
                "clientCapabilities": client or {},
                "clientInfo": {"name": "c", "version": "1"},
            },
        ),
        respond(
            "i",
            {
                "protocolVersion": 1,
                "agentCapabilities": agent or {},
                "agentInfo": {"name": "a", "version": "1"},
            }
            | answer,
        ),
    ]


def new(session: str = "s1", id_: Any = 1, *, result: dict[str, Any] | None = None, **params: Any) -> Talk:
    given = {"cwd": "/work/p", "mcpServers": []} | params
    return [ask(id_, "session/new", given), respond(id_, {"sessionId": session} | (result or {}))]


def prompt(id_: Any = 2, session: str = "s1", text: str = "hello", **params: Any) -> Row:
    given = {"sessionId": session, "prompt": [{"type": "text", "text": text}]} | params
    return ask(id_, "session/prompt", given)


def end(id_: Any = 2, reason: str = "end_turn", after_s: float = STEP_S) -> Row:
    return respond(id_, {"stopReason": reason}, after_s=after_s)


def cancel(session: str = "s1") -> Row:
    return notify("session/cancel", {"sessionId": session})


def update(kind: str, session: str = "s1", /, **fields: Any) -> Row:
    return notify("session/update", {"sessionId": session, "update": {"sessionUpdate": kind} | fields}, "agent")


def chunk(text: str = "hi", kind: str = "agent_message_chunk", session: str = "s1") -> Row:
    return update(kind, session, content={"type": "text", "text": text})


def call(id_: str = "c1", session: str = "s1", **fields: Any) -> Row:
    return update("tool_call", session, toolCallId=id_, title="Edit", **fields)


def progress(id_: str = "c1", status: str | None = None, session: str = "s1", **fields: Any) -> Row:
    given = fields if status is None else {"status": status} | fields
    return update("tool_call_update", session, toolCallId=id_, **given)


OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def ask_permission(id_: Any = 90, call_id: str = "c1", **params: Any) -> Row:
    given = {"sessionId": "s1", "toolCall": {"toolCallId": call_id}, "options": OPTIONS} | params
    return ask(id_, "session/request_permission", given, "agent")


def permit(id_: Any = 90, option: str = "yes") -> Row:
    return respond(id_, {"outcome": {"outcome": "selected", "optionId": option}}, "client")


def dismiss(id_: Any = 90) -> Row:
    return respond(id_, {"outcome": {"outcome": "cancelled"}}, "client")


def session(agent: dict[str, Any] | None = None, client: dict[str, Any] | None = None, **result: Any) -> Talk:
    """Return an initialized connection with one session."""
    return [*initialize(agent, client), *new(result=result)]


def turn(*rows: Row, reason: str = "end_turn", id_: Any = 2, text: str = "hello") -> Talk:
    """Return a complete turn that contains these rows."""
    return [prompt(id_, text=text), *rows, end(id_, reason)]


def judge(rows: Iterable[Row], *roles: Any, memory: AgentMemory | None = None) -> Judge:
    """Judge all rows and the end of the conversation."""
    conversation = RecordedConversation("a test")
    court = Judge(conversation, sides=roles or ("agent", "client"), memory=memory)
    at_s = 0.0
    for row in rows:
        at_s += row.after_s
        court.see(conversation.add(row.side, row.line, at_s, row.event))
    court.end()
    return court
