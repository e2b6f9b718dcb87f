"""Short notation for version 2 conversations, like `talking` for version 1."""

from base64 import b64encode
from typing import Any

from tests.check.judge.talking import STEP_S, Row, Talk, ask, line, notify, respond

CAPABLE = {
    "session": {
        "prompt": {"image": {}},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
        "additionalDirectories": {},
    }
}
LOGIN = {"type": "agent", "methodId": "login", "name": "Log in"}
INFO = {"name": "a", "version": "1"}


def initialize(agent: dict[str, Any] | None = None, client: dict[str, Any] | None = None, **answer: Any) -> Talk:
    return [
        ask("i", "initialize", {"protocolVersion": 2, "capabilities": client or {}, "info": INFO}),
        respond(
            "i",
            {"protocolVersion": 2, "capabilities": CAPABLE if agent is None else agent, "info": INFO} | answer,
        ),
    ]


def new(session: str = "s1", id_: Any = 1, *, result: dict[str, Any] | None = None, **params: Any) -> Talk:
    return [
        ask(id_, "session/new", {"cwd": "/work/p"} | params),
        respond(id_, {"sessionId": session} | (result or {})),
    ]


def session(agent: dict[str, Any] | None = None, client: dict[str, Any] | None = None, **result: Any) -> Talk:
    return [*initialize(agent, client), *new(result=result)]


def update(kind: str, session: str = "s1", /, **fields: Any) -> Row:
    return notify("session/update", {"sessionId": session, "update": {"sessionUpdate": kind} | fields}, "agent")


def state(name: str, session: str = "s1", after_s: float = STEP_S, **fields: Any) -> Row:
    body = {"sessionId": session, "update": {"sessionUpdate": "state_update", "state": name} | fields}
    return line("agent", {"method": "session/update", "params": body}, after_s)


def idle(reason: str | None = "end_turn", session: str = "s1", after_s: float = STEP_S, **fields: Any) -> Row:
    return state("idle", session, after_s, **({"stopReason": reason} if reason else {}) | fields)


RUNNING, ACTION = state("running"), state("requires_action")


def prompt(id_: Any = 2, text: str = "hello", session: str = "s1", **params: Any) -> Row:
    return ask(id_, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]} | params)


def accept(id_: Any = 2, message_id: str = "u1") -> Row:
    return respond(id_, {"messageId": message_id})


def message(text: str, id_: str, kind: str = "agent_message", session: str = "s1") -> Row:
    return update(kind, session, messageId=id_, content=[{"type": "text", "text": text}])


def user(text: str = "hello", id_: str = "u1") -> Row:
    return message(text, id_, "user_message")


def chunk(text: str = "hi", id_: str = "m1", kind: str = "agent_message_chunk") -> Row:
    return update(kind, messageId=id_, content={"type": "text", "text": text})


def call(status: str | None = None, id_: str = "c1", **fields: Any) -> Row:
    given = fields if status is None else {"status": status} | fields
    return update("tool_call_update", toolCallId=id_, **given)


START = call("pending", title="Edit")


def terminal(id_: str = "t1", **fields: Any) -> Row:
    return update("terminal_update", terminalId=id_, **fields)


def encode(text: str) -> str:
    return b64encode(text.encode()).decode()


OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
SUBJECT = {"type": "tool_call", "toolCall": {"toolCallId": "c1"}}


def ask_permission(id_: Any = 90, **params: Any) -> Row:
    given = {"sessionId": "s1", "title": "May I?", "subject": SUBJECT, "options": OPTIONS} | params
    return ask(id_, "session/request_permission", given, "agent")


def permit(id_: Any = 90, option: str = "yes", after_s: float = STEP_S) -> Row:
    return respond(id_, {"outcome": {"outcome": "selected", "optionId": option}}, "client", after_s)


def dismiss(id_: Any = 90) -> Row:
    return respond(id_, {"outcome": {"outcome": "cancelled"}}, "client")


def turn(*rows: Row, id_: Any = 2, text: str = "hello", message_id: str = "u1", reason: str = "end_turn") -> Talk:
    """Return a prompt and its complete work, which contains these rows."""
    return [prompt(id_, text), accept(id_, message_id), user(text, message_id), state("running"), *rows, idle(reason)]


def resume(id_: Any = 9, session: str = "s1", cwd: str = "/work/p", **params: Any) -> Row:
    return ask(id_, "session/resume", {"sessionId": session, "cwd": cwd} | params)


FROM_START = {"replayFrom": {"type": "start"}}
