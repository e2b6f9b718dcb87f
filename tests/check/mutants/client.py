"""The clean client, which uses every feature of an agent and follows every rule except the one to break.

`python -m tests.check.mutants.client RULE DIRECTORY COMMAND…` starts the agent, works in the directory, and exits.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.check.mutants.peer import INVALID_PARAMS, METHOD_NOT_FOUND, Breach, Object, Peer, Refused

NOT_FOUND = -32002
SLOW = "cancel me"
"""The id of a question that the user does not answer, but cancels."""
TAKEN_BACK = "taken back"
"""The prefix of the ids of questions that the agent withdraws immediately."""
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PIXEL = "iVBORw0KGgo="


class Terminal:
    """A command that is never run: its output and its state."""

    def __init__(self, output: str, limit: int | None) -> None:
        cut = output.encode()[-limit:].decode(errors="ignore") if limit is not None else output
        self.output = cut
        self.is_cut = cut != output
        self.is_running = False
        self.is_killed = False
        self.is_released = False
        self.waiting: list[Any] = []
        """Ids of requests that wait for its end."""


class Client(Peer):
    """Drives one agent. Each method is small, so that a breach can replace it."""

    def __init__(self, command: Sequence[str], directory: str, breach: Breach | None) -> None:
        self.agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        super().__init__(self.agent.stdin.fileno(), breach)
        self.directory = directory
        self.offered: Object = {}
        self.session_id = ""
        self.held: list[Any] = []
        self.is_cancelled = False
        self.terminals: dict[str, Terminal] = {}

    def run(self) -> None:
        signal.signal(signal.SIGINT, lambda *_: self.cancel())
        threading.Thread(target=self.read, daemon=True).start()
        self.talk()
        self.agent.stdin.close()
        self.agent.wait(5)

    def read(self) -> None:
        for line in self.agent.stdout:
            if line.endswith(b"\n") and line.strip():
                self.receive(line)
        self.lose()

    def lose(self) -> None:
        """End all waiting requests, because they will not be answered."""
        if self.agent.poll() is None:
            self.agent.wait(5)
        os._exit(1 if self.agent.returncode else 0)

    # ── requests of the client ──────────────────────────────────────────────────────────────────

    def talk(self) -> None:
        self.begin_early()
        greeting = self.greet()
        if not self.knows(greeting["protocolVersion"]):
            return
        self.offered = greeting["agentCapabilities"]
        self.log_in(greeting["authMethods"])
        opened = self.ask("session/new", self.opening())
        self.session_id = opened["sessionId"]
        self.do_more()
        self.set_up(opened)
        self.prompt(opened)
        if self.offers("loadSession"):
            self.reopen_sessions()

    def greet(self) -> Object:
        return self.ask("initialize", self.greeting())

    def begin_early(self) -> None:
        """Do nothing. Breaches send messages before `initialize` here."""

    def do_more(self) -> None:
        """Do nothing. Breaches add steps here."""

    def greeting(self) -> Object:
        return {
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": True, "writeTextFile": True},
                "terminal": True,
                "elicitation": {"form": {}},
            },
            "clientInfo": {"name": "clean-client", "version": "1"},
        }

    def knows(self, version: int) -> bool:
        return version == 1

    def offers(self, path: str) -> bool:
        value: Any = self.offered
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False

    def log_in(self, methods: list[Object]) -> None:
        if methods:
            self.ask("authenticate", {"methodId": methods[0]["id"]})

    def opening(self) -> Object:
        servers: list[Object] = [{"name": "tools", "command": sys.executable, "args": [], "env": []}]
        params: Object = {"cwd": self.directory, "mcpServers": servers}
        if self.offers("mcpCapabilities.http"):
            servers.append({"type": "http", "name": "more", "url": "http://127.0.0.1:9/mcp", "headers": []})
        if self.offers("sessionCapabilities.additionalDirectories"):
            params["additionalDirectories"] = ["/"]
        return params

    def set_up(self, opened: Object) -> None:
        if "modes" in opened:
            place = {"sessionId": self.session_id}
            self.ask("session/set_mode", {**place, "modeId": opened["modes"]["availableModes"][1]["id"]})
            option = opened["configOptions"][1]
            value = option["options"][1]["value"]
            self.ask("session/set_config_option", {**place, "configId": option["id"], "value": value})

    def prompt(self, opened: Object) -> None:
        params = {"sessionId": self.session_id, "prompt": self.blocks(), "_meta": {"traceparent": TRACE}}
        answer = self.begin("session/prompt", params)
        with suppress(BrokenPipeError):  # the agent may have exited because of the prompt, which `lose` handles
            self.notify("_clean/note", {"sessionId": self.session_id})
        if "modes" in opened:
            self.do_meanwhile(opened)
        answer.get(timeout=30)

    def do_meanwhile(self, opened: Object) -> None:
        mode = opened["modes"]["currentModeId"]
        self.ask("session/set_mode", {"sessionId": self.session_id, "modeId": mode})

    def blocks(self) -> list[Object]:
        blocks: list[Object] = [
            {"type": "text", "text": "Do all you can."},
            {"type": "resource_link", "name": "notes", "uri": "file:///notes.txt"},
        ]
        if self.offers("promptCapabilities.image"):
            blocks.append({"type": "image", "mimeType": "image/png", "data": PIXEL})
        return blocks

    def reopen_sessions(self) -> None:
        place = {"sessionId": self.session_id}
        self.ask("session/close", place)
        page = self.ask("session/list", {})
        self.ask("session/list", {"cursor": page["nextCursor"]})
        self.ask("session/list", {"cwd": self.directory})
        self.ask("session/load", {**place, "cwd": self.directory, "mcpServers": []})
        self.ask("session/resume", {**place, "cwd": self.directory, "mcpServers": []})
        self.ask("session/delete", place)
        self.ask("logout", {})

    def cancel(self) -> None:
        self.is_cancelled = True
        self.notify("session/cancel", {"sessionId": self.session_id})
        for request_id in self.held:
            self.dismiss(request_id)
        self.held.clear()

    def dismiss(self, request_id: Any) -> None:
        self.result(request_id, "session/request_permission", {"outcome": {"outcome": "cancelled"}})

    # ── messages of the agent ───────────────────────────────────────────────────────────────────

    def handle_garbage(self, line: bytes) -> None:
        """Ignore invalid lines."""

    def handle_notification(self, method: str, params: Object) -> None:
        if method == "$/cancel_request":
            self.withdraw(params["requestId"])
        elif method != "session/update":
            self.handle_strange_notification(method)

    def handle_strange_notification(self, method: str) -> None:
        """Ignore the unknown notification."""

    def withdraw(self, request_id: Any) -> None:
        if request_id in self.held:
            self.held.remove(request_id)
            self.dismiss(request_id)

    def handle_request(self, request_id: Any, method: str, params: Any) -> None:
        handlers = {
            "fs/read_text_file": self.read_file,
            "fs/write_text_file": self.write_file,
            "terminal/create": self.create_terminal,
            "terminal/output": self.output,
            "terminal/kill": self.kill,
            "terminal/release": self.release,
            "elicitation/create": self.elicit,
        }
        try:
            if method == "session/request_permission":
                self.handle_permission(request_id, params)
            elif method == "terminal/wait_for_exit":
                self.wait_for_exit(request_id, params)
            elif method in handlers:
                self.result(request_id, method, handlers[method](params))
            else:
                self.handle_strange_request(request_id, method)
        except Refused as refused:
            self.error(request_id, method, refused.code, str(refused))

    def handle_strange_request(self, request_id: Any, method: str) -> None:
        raise Refused(METHOD_NOT_FOUND, f"there is no method {method}")

    def handle_permission(self, request_id: Any, params: Object) -> None:
        self.check_permission(params)
        if self.is_cancelled:
            self.dismiss(request_id)
        elif str(request_id).startswith((SLOW, TAKEN_BACK)):
            self.held.append(request_id)
        else:
            self.result(request_id, "session/request_permission", self.decide())

    def check_permission(self, params: Object) -> None:
        if "toolCall" not in params:
            raise Refused(INVALID_PARAMS, "toolCall is missing")

    def decide(self) -> Object:
        return {"outcome": {"outcome": "selected", "optionId": "yes"}}

    def read_file(self, params: Object) -> Object:
        path = Path(params["path"])
        if not path.is_file():
            raise Refused(NOT_FOUND, "there is no such file")
        lines = path.read_text().splitlines(keepends=True)[params.get("line", 1) - 1 :]
        return {"content": "".join(lines[: params.get("limit")])}

    def write_file(self, params: Object) -> Object:
        Path(params["path"]).write_text(params["content"])
        return {}

    def create_terminal(self, params: Object) -> Object:
        terminal_id = self.new_terminal_id()
        self.terminals[terminal_id] = Terminal("".join(params.get("args", [])), params.get("outputByteLimit"))
        self.terminals[terminal_id].is_running = params["command"] == "sleep"
        return {"terminalId": terminal_id}

    def new_terminal_id(self) -> str:
        return f"terminal-{len(self.terminals)}"

    def find_terminal(self, params: Object) -> Terminal:
        terminal = self.terminals[params["terminalId"]]
        if terminal.is_released:
            raise Refused(NOT_FOUND, "the terminal was released")
        return terminal

    def output(self, params: Object) -> Object:
        terminal = self.find_terminal(params)
        status = None if terminal.is_running else {"exitCode": 0}
        return {"output": terminal.output, "truncated": terminal.is_cut, "exitStatus": status}

    def wait_for_exit(self, request_id: Any, params: Object) -> None:
        terminal = self.find_terminal(params)
        terminal.waiting.append(request_id)
        if not terminal.is_running:
            self.report_exit(terminal)

    def report_exit(self, terminal: Terminal) -> None:
        for request_id in terminal.waiting:
            self.result(request_id, "terminal/wait_for_exit", {"exitCode": 0})
        terminal.waiting.clear()

    def kill(self, params: Object) -> Object:
        terminal = self.find_terminal(params)
        terminal.is_killed, terminal.is_running = True, False
        self.report_exit(terminal)
        return {}

    def release(self, params: Object) -> Object:
        self.find_terminal(params).is_released = True
        return {}

    def elicit(self, params: Object) -> Object:
        if params["mode"] != "form":
            raise Refused(INVALID_PARAMS, "there are only forms here")
        return {"action": "accept", "content": self.fill_in()}

    def fill_in(self) -> Object:
        return {"name": "me"}


def main(rule: str, directory: str, *command: str) -> None:
    from tests.check.mutants.client_breaches import BREACHES

    Client(command, directory, BREACHES.get(rule)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
