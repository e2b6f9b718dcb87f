"""The clean version 2 agent, which follows every rule except the one to break.

`python -m tests.check.mutants_v2.agent DIRECTORY [RULE]` stores the sessions in the directory.
"""

import queue
import signal
import sys
import threading
import uuid
from base64 import b64encode
from typing import Any

from tests.check.mutants.agent import NOT_FOUND, Agent
from tests.check.mutants.peer import ANSWER_TIMEOUT_S, INVALID_PARAMS, Object, Refused
from tests.check.mutants.sessions import MODELS, MODES, Session, SessionFiles
from tests.check.mutants.turn import PIXEL, TRACE

UNSUPPORTED_VERSION = -32022
CANCELLED = -32800
OFFER_S = 0.2
"""How long a tool call can be cancelled in every turn."""
COMMAND = {"type": "command", "name": "review", "description": "Review the changes"}
OPTIONS = [
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
]


def _text(words: str) -> Object:
    return {"type": "text", "text": words}


class AgentOfV2(Agent):
    """Serves one client. Each method is small, so that a breach can replace it."""

    def __init__(self, session_files: SessionFiles, breach: Any) -> None:
        self.held: dict[str, list[tuple[Any, Object]]] = {}
        self.item_cancels: dict[str, threading.Event] = {}
        self.questions: dict[str, list[tuple[Any, queue.Queue[Object]]]] = {}
        super().__init__(session_files, breach)

    def handle_request(self, request_id: Any, method: str, params: Any) -> None:
        handlers = {
            "initialize": self.initialize,
            "auth/login": self.authenticate,
            "session/new": self.new_session,
            "session/resume": self.resume,
            "session/list": self.list_sessions,
            "session/delete": self.delete,
            "session/set_config_option": self.set_option,
            "tool_call/cancel": self.cancel_item,
            "terminal/cancel": self.cancel_item,
        }
        try:
            if method == "session/prompt":
                self.handle_prompt(request_id, params)
            elif method == "session/close":
                threading.Thread(target=self.close_session, args=(request_id, params), daemon=True).start()
            elif method in handlers:
                self.result(request_id, method, handlers[method](params))
            else:
                self.handle_strange_request(request_id, method)
        except Refused as refused:
            self.error(request_id, method, refused.code, str(refused), refused.data)

    # ── opening ─────────────────────────────────────────────────────────────────────────────────

    def initialize(self, params: Object) -> Object:
        asked = params.get("protocolVersion")
        if isinstance(asked, int) and asked < 2:
            raise self.refuse_version(asked)
        if not isinstance(asked, int) or "info" not in params:
            raise Refused(INVALID_PARAMS, "protocolVersion is an integer, info an object")
        self.client = params.get("capabilities") or {}
        session = {
            "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
            "mcp": {"stdio": {}, "http": {}},
            "delete": {},
        }
        return {
            "protocolVersion": self.agree(asked),
            "capabilities": {"session": session},
            "info": {"name": "clean-agent", "version": "2"},
            "authMethods": [{"type": "agent", "methodId": "key", "name": "A key"}],
        }

    def refuse_version(self, asked: int) -> Refused:
        return Refused(UNSUPPORTED_VERSION, "version 2 alone", {"requested": asked, "supported": [2]})

    def agree(self, version: int) -> int:
        return 2

    def check_params(self, params: Object) -> None:
        servers = params.setdefault("mcpServers", [])
        if not isinstance(params.get("cwd"), str) or not isinstance(servers, list):
            raise Refused(INVALID_PARAMS, "cwd is a path, mcpServers a list")
        if any(self.is_bad_server(each) for each in servers):
            raise Refused(INVALID_PARAMS, "a server has a type that is known, and a command or a url")

    def is_bad_server(self, server: Object) -> bool:
        return server.get("type") not in ("stdio", "http") or not {"command", "url"} & server.keys()

    def new_session(self, params: Object) -> Object:
        result = super().new_session(params)
        return {"sessionId": result["sessionId"], **self.settings(self.open[result["sessionId"]])}

    def settings(self, session: Session) -> Object:
        return {"configOptions": self.options(session), "availableCommands": [COMMAND]}

    def options(self, session: Session) -> list[Object]:
        named = [
            {"configId" if key == "id" else key: value for key, value in each.items()} for each in session.options()
        ]
        return [*named, {"configId": "fast", "name": "Fast", "type": "boolean", "currentValue": session.fast}]

    def set_option(self, params: Object) -> Object:
        session = self.find(params)
        self.check_value_type(params)
        if params["configId"] == "fast" and params["type"] == "boolean":
            session.fast = params["value"]
            return {"configOptions": self.options(session)}
        values = {"mode": MODES, "model": MODELS}
        if params["value"] not in values.get(params["configId"], ()):
            raise Refused(INVALID_PARAMS, "there is no such option or value")
        setattr(session, params["configId"], params["value"])
        return {"configOptions": self.options(session)}

    def check_value_type(self, params: Object) -> None:
        if params["type"] not in ("id", "boolean"):
            raise Refused(INVALID_PARAMS, "there is no such type of values")

    def find(self, params: Object) -> Session:
        session = self.open.get(params["sessionId"])
        if session is None:
            raise self.not_found(params)
        return session

    def fetch(self, params: Object) -> Session:
        session = self.open.get(params["sessionId"]) or self.session_files.find(params["sessionId"])
        if session is None:
            raise self.not_found(params)
        self.open[session.id] = session
        return session

    def not_found(self, params: Object) -> Refused:
        return Refused(NOT_FOUND, "there is no such session", {"sessionId": params["sessionId"]})

    # ── resuming ────────────────────────────────────────────────────────────────────────────────

    def resume(self, params: Object) -> Object:
        cursor = params.get("replayFrom")
        if cursor is not None and cursor.get("type") != "start":
            raise Refused(INVALID_PARAMS, "there is no such cursor")
        session = self.fetch(params)
        if cursor is not None:
            self.replay(session)
        self.send_state(session, "idle")
        return self.settings(session)

    def close_session(self, request_id: Any, params: Object) -> None:
        session = self.open.get(params["sessionId"])
        if session is not None:
            self.cancel(session)
            session.idle.wait()
            self.forget(session)
        self.result(request_id, "session/close", {})

    # ── cancelling ──────────────────────────────────────────────────────────────────────────────

    def cancel(self, session: Session) -> None:
        session.cancelled.set()
        self.refuse_held(session)
        for request_id, answer in self.pop_questions(session):
            self.notify("$/cancel_request", {"requestId": request_id})
            answer.put({})

    def pop_questions(self, session: Session) -> list[tuple[Any, queue.Queue[Object]]]:
        """Return the open questions of a session. The lock also covers a question that is being sent."""
        with self.lock:
            return self.questions.pop(session.id, [])

    def refuse_held(self, session: Session) -> None:
        for request_id, _ in self.held.pop(session.id, []):
            self.error(request_id, "session/prompt", CANCELLED, "cancelled before it was inserted")

    def cancel_request(self, request_id: Any) -> None:
        for held in self.held.values():
            for each in [each for each in held if each[0] == request_id]:
                held.remove(each)
                self.error(request_id, "session/prompt", CANCELLED, "cancelled before it was inserted")

    def cancel_item(self, params: Object) -> Object:
        offered = self.item_cancels.get(params.get("toolCallId") or params.get("terminalId") or "")
        if offered is None:
            raise Refused(INVALID_PARAMS, "there is nothing to cancel")
        offered.set()
        return {}

    # ── work ────────────────────────────────────────────────────────────────────────────────────

    def handle_prompt(self, request_id: Any, params: Object) -> None:
        blocks = params.get("prompt")
        if not isinstance(blocks, list):
            raise Refused(INVALID_PARAMS, "prompt is a list")
        session = self.find(params)
        self.check_blocks(blocks)
        if not session.idle.is_set():
            self.held.setdefault(session.id, []).append((request_id, params))
            return
        session.idle.clear()
        session.cancelled.clear()
        self.insert(request_id, session, blocks)
        threading.Thread(target=self.work, args=(session,), daemon=True).start()

    def check_blocks(self, blocks: list[Object]) -> None:
        if any(each["type"].startswith("_") for each in blocks):
            raise Refused(INVALID_PARAMS, "there is a block of a type that is not known")

    def insert(self, request_id: Any, session: Session, blocks: list[Object]) -> None:
        message_id = f"user-{uuid.uuid4()}"
        self.keep(session, "user_message", messageId=message_id, content=blocks)
        self.answer_prompt(request_id, message_id)

    def answer_prompt(self, request_id: Any, message_id: str) -> None:
        self.result(request_id, "session/prompt", {"messageId": message_id})

    def keep(self, session: Session, sessionUpdate: str, **fields: Any) -> None:
        """Send an update and store it for replays."""
        session.history.append({"sessionUpdate": sessionUpdate, **fields})
        self.update(session.id, sessionUpdate, **fields)

    def send_state(self, session: Session, state: str, **fields: Any) -> None:
        self.update(session.id, "state_update", state=state, background=[], **fields)

    def work(self, session: Session) -> None:
        self.send_state(session, "running")
        for step in (self.say, self.send_other_updates, self.edit, self.run_command, self.elicit):
            if not session.cancelled.is_set():
                step(session)
        self.session_files.save(session)
        with self.lock:
            self.end_work(session)
            session.idle.set()
            self.handle_held(session)

    def end_work(self, session: Session) -> None:
        self.send_state(session, "idle", stopReason="cancelled" if session.cancelled.is_set() else "end_turn")

    def handle_held(self, session: Session) -> None:
        for request_id, params in self.held.pop(session.id, []):
            self.handle_prompt(request_id, params)

    def say(self, session: Session) -> None:
        thought, said = f"thought-{uuid.uuid4()}", f"agent-{uuid.uuid4()}"
        self.update(session.id, "agent_thought_chunk", messageId=thought, content=_text("Let me think."))
        self.update(session.id, "agent_message_chunk", messageId=said, content=_text("I will do "))
        content = [
            _text("I will do all I can."),
            {"type": "image", "mimeType": "image/png", "data": PIXEL},
            {"type": "resource_link", "name": "notes", "uri": f"file://{session.cwd}/notes.txt"},
        ]
        self.keep(session, "agent_message", messageId=said, content=content)

    def send_other_updates(self, session: Session) -> None:
        self.notify("_clean/note", {"sessionId": session.id, "_meta": {"traceparent": TRACE}})
        entries = [{"content": "Do all I can", "priority": "high", "status": "in_progress"}]
        self.update(session.id, "plan_update", plan={"type": "items", "planId": "plan", "entries": entries})
        self.update(session.id, "usage_update", used=10, size=1000, cost={"amount": 0.5, "currency": "EUR"})
        self.update(session.id, "session_info_update", title="All I can", updatedAt="2026-01-02T03:04:05Z")
        self.update(session.id, "notice", severity="info", title="All goes well")
        self.update(session.id, "config_option_update", configOptions=self.options(session))
        self.update(session.id, "available_commands_update", availableCommands=[COMMAND])

    def call(self, session: Session, call_id: str, **fields: Any) -> None:
        self.update(session.id, "tool_call_update", toolCallId=call_id, **fields)

    def name_call(self, session: Session, kind: str) -> str:
        session.calls += 1
        return f"{kind}-{session.calls}"

    def edit(self, session: Session) -> None:
        path, call_id = f"{session.cwd}/made.txt", self.name_call(session, "edit")
        patch = f"diff --git {path} {path}\nnew file mode 100644\n--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+made\n"
        diff = {
            "type": "diff",
            "changes": [{"operation": "add", "path": path, "fileType": "text"}],
            "patch": {"format": "git_patch", "text": patch},
        }
        self.call(
            session, call_id, title="Make a file", kind="edit", status="pending", locations=[{"path": path, "line": 1}]
        )
        if not self.is_allowed(
            session, call_id, {"type": "tool_call", "toolCall": {"toolCallId": call_id, "content": [diff]}}
        ):
            self.call(session, call_id, status="cancelled" if session.cancelled.is_set() else "failed")
            return
        self.call(session, call_id, status="in_progress")
        content = {"type": "content", "content": _text("made")}
        self.update(session.id, "tool_call_content_chunk", toolCallId=call_id, content=content)
        done = {"title": "Make a file", "status": "completed", "content": [diff]}
        self.keep(session, "tool_call_update", toolCallId=call_id, **done)
        self.call(session, call_id, rawOutput={"isError": False})

    def is_allowed(self, session: Session, call_id: str, subject: Object) -> bool:
        params = {"sessionId": session.id, "title": "May I?", "subject": subject, "options": OPTIONS}
        with self.lock:
            answer = self.begin("session/request_permission", params)
            self.questions.setdefault(session.id, []).append((self._ids, answer))
        self.send_state(session, "requires_action")
        outcome = (answer.get(timeout=ANSWER_TIMEOUT_S).get("result") or {}).get("outcome", {})
        self.questions.pop(session.id, None)
        if session.cancelled.is_set():
            return False
        self.go_on(session)
        return self.approves(outcome)

    def go_on(self, session: Session) -> None:
        self.send_state(session, "running")

    def approves(self, outcome: Object) -> bool:
        return outcome.get("outcome") == "selected" and outcome.get("optionId") == "yes"

    def run_command(self, session: Session) -> None:
        call_id, terminal_id = self.name_call(session, "execute"), f"terminal-{session.calls}"
        subject = {"type": "command", "command": "make", "cwd": session.cwd, "toolCallId": call_id}
        self.call(session, call_id, title="Run", kind="execute", status="pending")
        if not self.is_allowed(session, call_id, subject):
            self.call(session, call_id, status="cancelled" if session.cancelled.is_set() else "failed")
            return
        call_stopped = self.item_cancels[call_id] = threading.Event()
        terminal_stopped = self.item_cancels[terminal_id] = threading.Event()
        can = {"cancel": {}}
        content = [{"type": "terminal", "terminalId": terminal_id}]
        self.call(session, call_id, status="in_progress", content=content, capabilities=can)
        self.terminal(session, terminal_id, command="make", cwd=session.cwd, capabilities=can)
        listed = [{"type": "terminal", "terminalId": terminal_id}]
        self.update(session.id, "state_update", state="running", background=listed)
        data = b64encode(b"made\r\n").decode()
        self.update(session.id, "terminal_output_chunk", terminalId=terminal_id, data=data)
        call_stopped.wait(OFFER_S)
        del self.item_cancels[call_id]
        is_cut = call_stopped.is_set() or session.cancelled.is_set()
        self.end_call(session, call_id, "cancelled" if is_cut else "completed")
        terminal_stopped.wait(OFFER_S if call_stopped.is_set() else 0)
        del self.item_cancels[terminal_id]
        self.end_terminal(session, terminal_id, data)
        self.send_state(session, "running")

    def terminal(self, session: Session, terminal_id: str, **fields: Any) -> None:
        self.update(session.id, "terminal_update", terminalId=terminal_id, **fields)

    def end_terminal(self, session: Session, terminal_id: str, data: str) -> None:
        self.terminal(session, terminal_id, exitStatus={"exitCode": 0}, capabilities=None)
        self.terminal(session, terminal_id, output={"data": data})

    def end_call(self, session: Session, call_id: str, status: str) -> None:
        self.call(session, call_id, status=status, capabilities=None)
        if status == "completed":
            kept = {"toolCallId": call_id, "title": "Run", "status": status}
            session.history.append({"sessionUpdate": "tool_call_update", **kept})

    def elicit(self, session: Session) -> None:
        """Show a form and a page to the user, both at once if the client supports both."""
        schema = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
        scope = {"sessionId": session.id, "toolCallId": f"edit-{session.calls - 1}"}
        form: Object = {**scope, "mode": "form", "message": "Your name?", "requestedSchema": schema}
        name = f"page-{session.id}-{session.calls}"
        page: Object = {"sessionId": session.id, "mode": "url", "elicitationId": name, "message": "Go?"}
        page["url"] = "https://example.com/connect"
        wanted = [each for each in (page, form) if self.offers(f"elicitation.{each['mode']}")]
        self.ask_at_once([("elicitation/create", each) for each in wanted])
        if page in wanted:
            self.notify("elicitation/complete", {"elicitationId": name})


def main(directory: str, rule: str = "") -> None:
    from tests.check.mutants_v2.agent_breaches import BREACHES

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    AgentOfV2(SessionFiles(directory), BREACHES[rule].breach if rule else None).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
