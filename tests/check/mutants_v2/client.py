"""The clean version 2 client, which uses every feature of an agent and follows every rule except the one to break.

`python -m tests.check.mutants_v2.client RULE DIRECTORY COMMAND…` starts the agent, works in the directory, and exits.
"""

import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tests.check.mutants.client import TRACE, Client
from tests.check.mutants.peer import INVALID_PARAMS, Breach, Object, Refused


class ClientOfV2(Client):
    """Drives one agent. Each method is small, so that a breach can replace it."""

    def __init__(self, command: Sequence[str], directory: str, breach: Breach | None) -> None:
        self.is_idle = threading.Event()
        super().__init__(command, directory, breach)

    def talk(self) -> None:
        greeting = self.greet()
        self.offered = greeting["capabilities"]
        self.log_in(greeting["authMethods"])
        opened = self.ask("session/new", self.opening())
        self.session_id = opened["sessionId"]
        self.do_more()
        self.set_up(opened)
        self.prompt(opened)
        if self.offers("session.delete"):
            self.reopen_sessions()

    def greeting(self) -> Object:
        capabilities = {"elicitation": {"form": {}}}
        return {"protocolVersion": 2, "capabilities": capabilities, "info": {"name": "clean-client", "version": "2"}}

    def log_in(self, methods: list[Object]) -> None:
        if methods:
            self.ask("auth/login", {"methodId": methods[0]["methodId"]})

    def opening(self) -> Object:
        servers: list[Object] = []
        if self.offers("session.mcp.stdio"):
            servers.append({"type": "stdio", "name": "tools", "command": sys.executable, "args": [], "env": []})
        if self.offers("session.mcp.http"):
            servers.append({"type": "http", "name": "more", "url": "http://127.0.0.1:9/mcp", "headers": []})
        more = {"additionalDirectories": ["/"]} if self.offers("session.additionalDirectories") else {}
        return {"cwd": self.directory, "mcpServers": servers, **more}

    def set_up(self, opened: Object) -> None:
        for option in opened.get("configOptions", [])[1:]:
            value = {"configId": option["configId"], "type": "id", "value": option["options"][1]["value"]}
            self.ask("session/set_config_option", {"sessionId": self.session_id, **value})

    def prompt(self, opened: Object) -> None:
        params = {"sessionId": self.session_id, "prompt": self.blocks(), "_meta": {"traceparent": TRACE}}
        answer = self.begin("session/prompt", params)
        with suppress(BrokenPipeError):  # the agent may have exited because of the prompt, which `lose` handles
            self.notify("_clean/note", {"sessionId": self.session_id})
        answer.get(timeout=30)
        self.is_idle.wait(30)

    def offers(self, path: str) -> bool:
        return super().offers({"promptCapabilities.image": "session.prompt.image"}.get(path, path))

    def reopen_sessions(self) -> None:
        place = {"sessionId": self.session_id}
        self.ask("session/close", place)
        page = self.ask("session/list", {})
        self.ask("session/list", {"cursor": page["nextCursor"]})
        self.ask("session/list", {"cwd": self.directory})
        self.ask("session/resume", {**place, "cwd": self.directory, "replayFrom": {"type": "start"}})
        self.ask("session/delete", place)

    def handle_notification(self, method: str, params: Object) -> None:
        if method == "session/update":
            self.handle_update(params["update"])
        else:
            super().handle_notification(method, params)

    def handle_update(self, update: Object) -> None:
        if update.get("state") == "idle":
            self.is_idle.set()
        if (update.get("capabilities") or {}).get("cancel") is not None:
            self.cancel_item(update)

    def cancel_item(self, update: Object) -> None:
        """Cancel a tool call or a terminal that offers it."""
        method, name = (
            ("terminal/cancel", "terminalId") if "terminalId" in update else ("tool_call/cancel", "toolCallId")
        )
        self.begin(method, {"sessionId": self.session_id, name: update[name]})

    def check_permission(self, params: Object) -> None:
        if "subject" not in params:
            raise Refused(INVALID_PARAMS, "subject is missing")


def main(rule: str, directory: str, *command: Any) -> None:
    from tests.check.mutants_v2.client_breaches import BREACHES

    ClientOfV2(command, directory, BREACHES[rule].breach if rule in BREACHES else None).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
