"""A turn of the clean agent, in which it uses every feature."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.check.mutants.sessions import MODES, Session

if TYPE_CHECKING:
    from tests.check.mutants.agent import Agent

Object = dict[str, Any]

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PIXEL = "iVBORw0KGgo="
OPTIONS = [
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
]


def play(agent: "Agent", session: Session) -> None:
    """Do one step after another until all are done or the turn is cancelled."""
    for step in (say, send_state, read, edit, run_command, elicit):
        if session.cancelled.is_set():
            return
        step(agent, session)


def say(agent: "Agent", session: Session) -> None:
    chunks: list[Object] = [
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Let me think."}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I will do all I can."}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "mimeType": "image/png", "data": PIXEL}},
        {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "resource_link", "name": "notes", "uri": f"file://{session.cwd}/notes.txt"},
        },
    ]
    for chunk in chunks:
        session.history.append(chunk)
        agent.update(session.id, **chunk)


def send_state(agent: "Agent", session: Session) -> None:
    agent.notify("_clean/note", {"sessionId": session.id, "_meta": {"traceparent": TRACE}})
    agent.update(session.id, "plan", entries=[{"content": "Do all I can", "priority": "high", "status": "in_progress"}])
    agent.update(session.id, "usage_update", used=10, size=1000, cost={"amount": 0.5, "currency": "EUR"})
    agent.update(session.id, "session_info_update", title="All I can", updatedAt="2026-01-02T03:04:05Z")
    if agent.offers("session.notices"):
        agent.update(session.id, "notice", severity="info", title="All goes well")
    session.mode = MODES[1]
    agent.update(session.id, "current_mode_update", currentModeId=session.mode)
    agent.update(session.id, "config_option_update", configOptions=session.options())


def announce(agent: "Agent", session: Session, kind: str, **fields: Any) -> str:
    session.calls += 1
    call_id = f"{kind}-{session.calls}"
    agent.update(session.id, "tool_call", toolCallId=call_id, title=kind, kind=kind, status="pending", **fields)
    return call_id


def progress(agent: "Agent", session: Session, call_id: str, status: str, **fields: Any) -> None:
    agent.update(session.id, "tool_call_update", toolCallId=call_id, status=status, **fields)
    kept: Object = {"sessionUpdate": "tool_call", "toolCallId": call_id, "title": call_id, "status": "completed"}
    if status == "completed" and kept not in session.history:
        session.history.append(kept)


def carry_out(agent: "Agent", session: Session, call_id: str, work: Callable[[], Object]) -> None:
    progress(agent, session, call_id, "in_progress")
    fields = work()
    progress(agent, session, call_id, "failed" if session.cancelled.is_set() else "completed", **fields)


def read(agent: "Agent", session: Session) -> None:
    path = os.path.join(session.cwd, "notes.txt")
    call_id = announce(agent, session, "read", locations=[{"path": path, "line": 1}])

    def work() -> Object:
        if agent.offers("fs.readTextFile"):
            place = {"sessionId": session.id, "path": path}
            agent.ask("fs/read_text_file", place)
            agent.ask("fs/read_text_file", {**place, "line": 1, "limit": 1})
        return {"rawOutput": {"isError": False}}

    carry_out(agent, session, call_id, work)


def edit(agent: "Agent", session: Session) -> None:
    path = os.path.join(session.cwd, "made.txt")
    diff = {"type": "diff", "path": path, "oldText": None, "newText": "made\n"}
    call_id = announce(agent, session, "edit", content=[diff])
    answer = agent.ask(
        "session/request_permission",
        {"sessionId": session.id, "toolCall": {"toolCallId": call_id}, "options": OPTIONS},
    )
    outcome = answer.get("outcome", {})
    if outcome.get("outcome") == "cancelled":
        session.cancelled.set()
    if outcome.get("optionId") != "yes":
        progress(agent, session, call_id, "failed")
        return

    def work() -> Object:
        if agent.offers("fs.writeTextFile"):
            agent.ask("fs/write_text_file", {"sessionId": session.id, "path": path, "content": "made\n"})
        return {}

    carry_out(agent, session, call_id, work)


def run_command(agent: "Agent", session: Session) -> None:
    if not agent.offers("terminal"):
        return
    place: Object = {"sessionId": session.id}
    made = agent.ask("terminal/create", {**place, "command": "true", "cwd": session.cwd})
    if "terminalId" not in made:
        return
    place["terminalId"] = made["terminalId"]
    call_id = announce(agent, session, "execute", content=[{"type": "terminal", "terminalId": place["terminalId"]}])

    def work() -> Object:
        agent.ask("terminal/wait_for_exit", place)
        agent.ask("terminal/output", place)
        agent.ask("terminal/release", place)
        return {}

    carry_out(agent, session, call_id, work)


def elicit(agent: "Agent", session: Session) -> None:
    """Show a form and a page to the user, both at once if the client supports both."""
    call_id = announce(agent, session, "other")
    schema = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
    scope = {"sessionId": session.id, "toolCallId": call_id}
    form: Object = {**scope, "mode": "form", "message": "Your name?", "requestedSchema": schema}
    name = f"page-{session.id}-{session.calls}"
    url = "https://example.com/connect"
    page: Object = {"requestId": session.prompt_id, "mode": "url", "elicitationId": name, "url": url, "message": "Go?"}
    wanted = [each for each in (page, form) if agent.offers(f"elicitation.{each['mode']}")]
    agent.ask_at_once([("elicitation/create", each) for each in wanted])
    if page in wanted:
        agent.notify("elicitation/complete", {"elicitationId": name})
    progress(agent, session, call_id, "completed")
    progress(agent, session, call_id, "completed", rawOutput={"isError": False})
