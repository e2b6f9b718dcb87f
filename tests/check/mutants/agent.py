"""The clean agent, which has every feature of the protocol and follows every rule except the one to break.

`python -m tests.check.mutants.agent DIRECTORY [RULE]` stores the sessions in the directory.
"""

import os
import signal
import subprocess
import sys
import threading
import uuid
from typing import Any

from tests.check.mutants.peer import INVALID_PARAMS, METHOD_NOT_FOUND, Breach, Object, Peer, Refused
from tests.check.mutants.sessions import MODELS, MODES, Session, SessionFiles
from tests.check.mutants.turn import play

AUTH_REQUIRED = -32000
NOT_FOUND = -32002
BUSY = -32600
PARSE_ERROR = -32700
PAGE = 2


class Agent(Peer):
    """Serves one client. Each method is small, so that a breach can replace it."""

    def __init__(self, session_files: SessionFiles, breach: Breach | None) -> None:
        super().__init__(1, breach)
        self.session_files = session_files
        self.open: dict[str, Session] = {}
        self.client: Object = {}
        self.is_logged_in = False
        self.servers: list[subprocess.Popen[bytes]] = []

    def serve(self) -> None:
        for line in sys.stdin.buffer:
            if line.endswith(b"\n") and line.strip():
                self.receive(line)
        self.end()

    def end(self) -> None:
        for server in self.servers:
            server.stdin.close()
        for server in self.servers:
            server.wait(5)
        os._exit(0)

    def handle_garbage(self, line: bytes) -> None:
        self.error(None, "garbage", PARSE_ERROR, "this is not a message")

    def handle_notification(self, method: str, params: Object) -> None:
        if method == "session/cancel" and params.get("sessionId") in self.open:
            self.cancel(self.open[params["sessionId"]])
        elif method == "$/cancel_request":
            self.cancel_request(params.get("requestId"))
        else:
            self.handle_strange_notification(method)

    def handle_strange_notification(self, method: str) -> None:
        """Ignore the unknown notification."""

    def cancel(self, session: Session) -> None:
        session.cancelled.set()

    def cancel_request(self, request_id: Any) -> None:
        for session in self.open.values():
            if session.prompt_id == request_id:
                self.cancel(session)

    def handle_request(self, request_id: Any, method: str, params: Any) -> None:
        handlers = {
            "initialize": self.initialize,
            "authenticate": self.authenticate,
            "session/new": self.new_session,
            "session/load": self.load,
            "session/resume": self.resume,
            "session/list": self.list_sessions,
            "session/delete": self.delete,
            "session/set_mode": self.set_mode,
            "session/set_config_option": self.set_option,
        }
        try:
            if method == "session/prompt":
                self.handle_prompt(request_id, params)
            elif method == "session/close":
                threading.Thread(target=self.close, args=(request_id, self.find(params)), daemon=True).start()
            elif method in handlers:
                self.result(request_id, method, handlers[method](params))
                if method in ("session/new", "session/load"):
                    self.send_commands(params)
            else:
                self.handle_strange_request(request_id, method)
        except Refused as refused:
            self.error(request_id, method, refused.code, str(refused), refused.data)

    def handle_strange_request(self, request_id: Any, method: str) -> None:
        raise Refused(METHOD_NOT_FOUND, f"there is no method {method}")

    # ── opening ─────────────────────────────────────────────────────────────────────────────────

    def initialize(self, params: Object) -> Object:
        if not isinstance(params.get("protocolVersion"), int):
            raise Refused(INVALID_PARAMS, "protocolVersion is an integer")
        self.client = params.get("clientCapabilities") or {}
        return {
            "protocolVersion": self.agree(params["protocolVersion"]),
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
            },
            "agentInfo": {"name": "clean-agent", "version": "1"},
            "authMethods": [{"id": "key", "name": "A key"}],
        }

    def offers(self, path: str) -> bool:
        """Return whether the client has a capability."""
        value: Any = self.client
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False

    def agree(self, version: int) -> int:
        return 1

    def authenticate(self, params: Object) -> Object:
        if params.get("methodId") != "key":
            raise Refused(INVALID_PARAMS, "there is no such method")
        self.is_logged_in = True
        return {}

    def needs_login(self) -> bool:
        return not self.is_logged_in

    def new_session(self, params: Object) -> Object:
        if self.needs_login():
            raise Refused(AUTH_REQUIRED, "log in first")
        self.check_params(params)
        self.check_cwd(params["cwd"])
        session = Session(self.new_id(), params["cwd"])
        self.session_files.save(session)
        self.open[session.id] = session
        params["sessionId"] = session.id
        for server in params["mcpServers"]:
            self.start_server(session, server)
        return {"sessionId": session.id, **session.settings()}

    def new_id(self) -> str:
        return f"session-{uuid.uuid4()}"

    def check_params(self, params: Object) -> None:
        servers = params.get("mcpServers")
        if not isinstance(params.get("cwd"), str) or not isinstance(servers, list):
            raise Refused(INVALID_PARAMS, "cwd is a path, mcpServers a list")
        if any("command" not in each and "url" not in each for each in servers):
            raise Refused(INVALID_PARAMS, "a server has a command or a url")

    def check_cwd(self, cwd: str) -> None:
        if not os.path.isabs(cwd):
            raise Refused(INVALID_PARAMS, "cwd is an absolute path")

    def start_server(self, session: Session, server: Object) -> None:
        if "command" in server:
            command = [server["command"], *server["args"]]
            self.servers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))

    def send_commands(self, params: Object) -> None:
        commands = [{"name": "review", "description": "Review the changes"}]
        self.update(params["sessionId"], "available_commands_update", availableCommands=commands)

    # ── loading and resuming ────────────────────────────────────────────────────────────────────

    def load(self, params: Object) -> Object:
        session = self.fetch(params)
        self.replay(session)
        return session.settings()

    def resume(self, params: Object) -> Object:
        return self.fetch(params).settings()

    def replay(self, session: Session) -> None:
        for update in session.history:
            self.update(session.id, **update)

    def fetch(self, params: Object) -> Session:
        session = self.session_files.find(params["sessionId"])
        if session is None:
            raise Refused(NOT_FOUND, "there is no such session")
        self.open[session.id] = session
        return session

    def find(self, params: Object) -> Session:
        session = self.open.get(params["sessionId"])
        if session is None:
            raise Refused(NOT_FOUND, "there is no such session")
        return session

    def list_sessions(self, params: Object) -> Object:
        before = self.place(params.get("cursor"))
        sessions = [each for each in self.session_files.all() if params.get("cwd") in (None, each.cwd)]
        rest = [each for each in sessions if before is None or each.created < before]
        result: Object = {"sessions": [each.info() for each in rest[:PAGE]]}
        if len(rest) > PAGE:
            result["nextCursor"] = f"before-{rest[PAGE - 1].created}"
        return result

    def place(self, cursor: str | None) -> int | None:
        """Return the time before which the next page starts, so that new sessions move nothing."""
        if cursor is None:
            return None
        if not cursor.startswith("before-"):
            raise Refused(INVALID_PARAMS, "there is no such cursor")
        return int(cursor.removeprefix("before-"))

    def close(self, request_id: Any, session: Session) -> None:
        self.cancel(session)
        session.idle.wait()
        self.forget(session)
        self.result(request_id, "session/close", {})

    def forget(self, session: Session) -> None:
        self.open.pop(session.id, None)

    def delete(self, params: Object) -> Object:
        self.open.pop(params["sessionId"], None)
        self.session_files.delete(params["sessionId"])
        return {}

    # ── settings ────────────────────────────────────────────────────────────────────────────────

    def set_mode(self, params: Object) -> Object:
        session = self.find(params)
        if params["modeId"] not in MODES:
            raise Refused(INVALID_PARAMS, "there is no such mode")
        session.mode = params["modeId"]
        return {}

    def set_option(self, params: Object) -> Object:
        session = self.find(params)
        values = {"mode": MODES, "model": MODELS}
        if params["value"] not in values.get(params["configId"], ()):
            raise Refused(INVALID_PARAMS, "there is no such option or value")
        setattr(session, params["configId"], params["value"])
        return {"configOptions": session.options()}

    # ── turns ───────────────────────────────────────────────────────────────────────────────────

    def handle_prompt(self, request_id: Any, params: Object) -> None:
        if not isinstance(params.get("prompt"), list):
            raise Refused(INVALID_PARAMS, "prompt is a list")
        session = self.find(params)
        if not session.idle.is_set():
            self.handle_second_prompt(request_id, session)
            return
        session.idle.clear()
        session.cancelled.clear()
        session.prompt_id = request_id
        threading.Thread(target=self.run, args=(request_id, session, params["prompt"]), daemon=True).start()

    def handle_second_prompt(self, request_id: Any, session: Session) -> None:
        raise Refused(BUSY, "a prompt is running")

    def run(self, request_id: Any, session: Session, prompt: list[Object]) -> None:
        session.history += [{"sessionUpdate": "user_message_chunk", "content": each} for each in prompt]
        self.play(session)
        self.session_files.save(session)
        with self.lock:  # a cancel that is read after this crosses the answer
            session.prompt_id = None
            self.answer_prompt(request_id, session)
            session.idle.set()

    def play(self, session: Session) -> None:
        play(self, session)

    def answer_prompt(self, request_id: Any, session: Session) -> None:
        reason = "cancelled" if session.cancelled.is_set() else "end_turn"
        self.result(request_id, "session/prompt", {"stopReason": reason})

    def update(self, session_id: str, sessionUpdate: str, **fields: Any) -> None:
        update = {"sessionUpdate": sessionUpdate, **fields}
        params = {"sessionId": session_id, "update": update}
        self.send(f"update {sessionUpdate}", {"jsonrpc": "2.0", "method": "session/update", "params": params})


def main(directory: str, rule: str = "") -> None:
    from tests.check.mutants.agent_breaches import BREACHES

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Agent(SessionFiles(directory), BREACHES[rule] if rule else None).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
