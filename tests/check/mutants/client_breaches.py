"""For each rule for clients, how the clean client breaks it."""

import json
import time
from collections.abc import Callable
from typing import Any

from tests.check.mutants.edits import (
    INTERNAL_ERROR,
    INVENTED,
    code,
    drop,
    fail,
    nothing,
    set_params,
    set_result,
    then,
    twice,
)
from tests.check.mutants.overrides import answer_notification, die, die_of_length, pass_over_length
from tests.check.mutants.peer import METHOD_NOT_FOUND, Breach, Lines, Object, Refused, override

NOTE: Object = {"jsonrpc": "2.0", "method": "_clean/note", "params": {}}
CUT = "\N{REPLACEMENT CHARACTER}"
PERMISSION = "session/request_permission"


def answer_anything(self: Any, request_id: Any, method: str) -> None:
    if method.startswith("_"):
        self.result(request_id, method, {})
    else:
        type(self).handle_strange_request(self, request_id, method)


def ask_more(method: str, **params: Any) -> Callable[..., None]:
    """Return a step that sends a request for the session."""
    return lambda self: self.ask(method, {"sessionId": self.session_id, **params})


def come_back_to(method: str) -> Callable[..., None]:
    return lambda self: self.ask(method, {"sessionId": self.session_id, "cwd": self.directory, "mcpServers": []})


def send_update(self: Any) -> None:
    update = {"sessionUpdate": "session_info_update", "title": "mine"}
    self.notify("session/update", {"sessionId": self.session_id, "update": update})


def prompt_at_once(self: Any, opened: Object) -> None:
    self.begin("session/prompt", {"sessionId": self.session_id, "prompt": self.blocks()})


def forget_withdrawn(self: Any, request_id: Any) -> None:
    """Leave the request unanswered."""


def decide_late(self: Any, request_id: Any) -> None:
    self.result(request_id, PERMISSION, self.decide())


def read_all(self: Any, params: Object) -> Object:
    return type(self).read_file(self, {"path": params["path"]})


def greet_and_go_on(self: Any) -> Object:
    greeting = self.begin("initialize", self.greeting())
    self.ask("session/new", self.opening())
    return greeting.get(timeout=10)["result"]


def never_wait(self: Any, request_id: Any, params: Object) -> None:
    self.result(request_id, "terminal/wait_for_exit", {"exitCode": 0})


def refuse(*args: Any) -> Object:
    raise Refused(INTERNAL_ERROR, "broken")


def print_all(self: Any, params: Object) -> Object:
    return {**type(self).output(self, params), "output": "a" * 200}


def print_cut(self: Any, params: Object) -> Object:
    return {**type(self).output(self, params), "output": f"{CUT}end", "truncated": True}


def forget_killed(self: Any, params: Object) -> Object:
    if self.terminals[params["terminalId"]].is_killed:
        raise Refused(INTERNAL_ERROR, "it was killed")
    return type(self).output(self, params)


def keep_released(self: Any, params: Object) -> Object:
    return {}


def decline_pages(self: Any, params: Object) -> Object:
    return type(self).elicit(self, params) if params["mode"] == "form" else {"action": "decline"}


def number_id(message: Object) -> None:
    if isinstance(message["id"], str):
        message["id"] = -1


def say_hello(self: Any) -> None:
    self.notify("clean/hello", {})


def pretty(message: Object) -> list[Any]:
    return [message, json.dumps(NOTE, indent=1).encode() + b"\n"]


def block(number: int, **fields: Any) -> Callable[[Object], None]:
    """Change a block of the prompt."""
    return lambda message: message["params"]["prompt"][number].update(fields)


def textless(message: Object) -> None:
    del message["params"]["prompt"][0]["text"]


def add_image(message: Object) -> None:
    message["params"]["prompt"].append({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="})


def server(number: int, **fields: Any) -> Callable[[Object], None]:
    """Change an MCP server of the new session."""
    return lambda message: message["params"]["mcpServers"][number].update(fields)


def add_http_server(message: Object) -> None:
    more = {"type": "http", "name": "more", "url": "http://127.0.0.1:9/mcp", "headers": []}
    message["params"]["mcpServers"].append(more)


def snake(message: Object) -> None:
    message["params"]["session_id"] = message["params"].pop("sessionId")


def rename(old: str, new: str) -> Callable[[Object], None]:
    """Send a field of the params under another name."""
    return lambda message: message["params"].update({new: message["params"].pop(old)})


def title(message: Object) -> None:
    message["params"]["clientInfo"]["title"] = 5


BREACHES: dict[str, Breach] = {
    "ACP-WIRE-101": Lines("request session/new", then(b"DEBUG: ready\n")),
    "ACP-WIRE-102": Lines("request session/new", then(b'{"jsonrpc":"2.0","method":"_n","params":{"a":"\xff"}}\n')),
    "ACP-WIRE-103": Lines("request session/new", pretty),
    "ACP-WIRE-104": Lines("request session/new", lambda message: message.pop("jsonrpc") and None),
    "ACP-WIRE-105": Lines("(error|result) .*", number_id),
    "ACP-WIRE-106": Lines(f"result {PERMISSION}", twice),
    "ACP-WIRE-107": override(next_id=lambda self: 7),
    "ACP-WIRE-108": override(handle_strange_notification=answer_notification),
    "ACP-WIRE-109": Lines(f"error {INVENTED}method", drop("error", "message")),
    "ACP-WIRE-110": Lines(f"error {INVENTED}method", code(INTERNAL_ERROR)),
    "ACP-WIRE-111": Lines(f"error {INVENTED}method", nothing),
    "ACP-WIRE-111 permission unanswered": Lines(f"result {PERMISSION}", nothing),
    "ACP-WIRE-111 unknown request unanswered": Lines(f"error _?{INVENTED}.*", nothing),
    "ACP-WIRE-111 wait_for_exit of a killed command": override(report_exit=lambda self, terminal: None),
    "ACP-WIRE-112": override(handle_garbage=die),
    "ACP-WIRE-113": override(lose=lambda self: time.sleep(60)),
    "ACP-WIRE-114": override(receive=die_of_length),
    "ACP-WIRE-114 passed over": override(receive=pass_over_length),
    "ACP-WIRE-115": override(check_permission=lambda self, params: None),
    "ACP-WIRE-120": Lines("request initialize", title),
    "ACP-WIRE-121": Lines("request session/prompt", block(0, type="words")),
    "ACP-WIRE-122": Lines("request session/load", snake),
    "ACP-WIRE-123": override(do_more=lambda self: self.notify("session/set_mode", {"sessionId": "s", "modeId": "ask"})),
    "ACP-WIRE-124": override(do_more=send_update),
    "ACP-WIRE-125": override(withdraw=forget_withdrawn),
    "ACP-WIRE-126": override(next_id=lambda self: type(self).next_id(self) + 0.5),
    "ACP-INIT-101": override(begin_early=lambda self: self.ask("session/list", {})),
    "ACP-INIT-101 session/new before the greeting": override(greet=greet_and_go_on),
    "ACP-INIT-102": Lines("request initialize", set_params(protocolVersion="1")),
    "ACP-INIT-103": override(knows=lambda self, version: True),
    "ACP-INIT-109": Lines("request initialize", rename("clientCapabilities", "capabilities")),
    "ACP-INIT-105": Lines("request initialize", drop("params", "clientInfo")),
    "ACP-INIT-106": Lines("result fs/write_text_file", fail(METHOD_NOT_FOUND)),
    "ACP-INIT-107": Lines(f"result {PERMISSION}", fail(METHOD_NOT_FOUND)),
    "ACP-AUTH-101": Lines("request authenticate", set_params(methodId="another")),
    "ACP-AUTH-102": override(do_more=lambda self: self.ask("logout", {})),
    "ACP-NEW-101": Lines("request session/new", set_params(cwd="here")),
    "ACP-NEW-102": Lines("request session/new", set_params(additionalDirectories=["/"])),
    "ACP-NEW-103": Lines("request session/new", set_params(additionalDirectories=["there"])),
    "ACP-LOAD-101": override(do_more=come_back_to("session/load")),
    "ACP-RESUME-101": override(do_more=come_back_to("session/resume")),
    "ACP-LIST-101": override(do_more=lambda self: self.ask("session/list", {})),
    "ACP-LIST-102": override(do_more=lambda self: self.ask("session/list", {"cursor": "made-up"})),
    "ACP-LIST-103": override(do_more=lambda self: self.ask("session/list", {"cwd": "here"})),
    "ACP-CLOSE-101": override(do_more=ask_more("session/close")),
    "ACP-DELETE-101": override(do_more=ask_more("session/delete")),
    "ACP-MODE-101": override(do_more=ask_more("session/set_mode", modeId="another")),
    "ACP-CONFIG-101": override(do_more=ask_more("session/set_config_option", configId="model", value="another")),
    "ACP-CONFIG-102": override(do_more=ask_more("session/set_config_option", configId="another", value="any")),
    "ACP-PROMPT-101": Lines("request session/prompt", add_image),
    "ACP-PROMPT-102": Lines("request session/prompt", set_params(sessionId="another")),
    "ACP-PROMPT-103": override(do_meanwhile=prompt_at_once),
    "ACP-CANCEL-101": override(dismiss=decide_late),
    "ACP-PERM-101": override(decide=lambda self: {"outcome": "selected", "optionId": "yes"}),
    "ACP-PERM-102": override(decide=lambda self: {"outcome": {"outcome": "selected", "optionId": "maybe"}}),
    "ACP-PERM-103": override(decide=lambda self: {"outcome": {"outcome": "cancelled"}}),
    "ACP-FS-101": override(read_file=refuse),
    "ACP-FS-102": override(read_file=read_all),
    "ACP-FS-103": Lines("result fs/read_text_file", set_result(content=5)),
    "ACP-TERM-101": override(new_terminal_id=lambda self: "terminal"),
    "ACP-TERM-102": override(output=print_all),
    "ACP-TERM-103": override(output=print_cut),
    "ACP-TERM-104": override(output=forget_killed),
    "ACP-TERM-105": override(release=keep_released),
    "ACP-TERM-106": Lines("result terminal/output", set_result(exitStatus=None)),
    "ACP-TERM-106 wait_for_exit returns early": override(wait_for_exit=never_wait),
    "ACP-TERM-107": Lines("result terminal/output", set_result(truncated="no")),
    "ACP-CONTENT-101": Lines("request session/prompt", textless),
    "ACP-CONTENT-102": Lines("request session/prompt", block(2, data="no base64")),
    "ACP-CONTENT-103": Lines("request session/prompt", block(1, uri="notes.txt")),
    "ACP-ELICIT-101": Lines("result elicitation/create", set_result(action="agree")),
    "ACP-ELICIT-102": override(fill_in=lambda self: {}),
    "ACP-ELICIT-103": override(elicit=decline_pages),
    "ACP-EXT-101": Lines("request session/prompt", set_params(colour="red")),
    "ACP-EXT-102": override(do_more=say_hello),
    "ACP-EXT-103": override(handle_strange_request=answer_anything),
    "ACP-EXT-104": override(handle_strange_notification=die),
    "ACP-EXT-105": Lines("request session/prompt", set_params(_meta={"traceparent": "none"})),
    "ACP-MCP-101": Lines("request session/new", drop("params", "mcpServers")),
    "ACP-MCP-102": Lines("request session/new", add_http_server),
    "ACP-MCP-103": Lines("request session/new", server(0, command="server")),
}
