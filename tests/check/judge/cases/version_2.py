"""Version 2 conversations for its own rules, and for shared rules that it judges differently."""

from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, cancel, event, line, notify, refuse, respond
from tests.check.judge.talking_v2 import (
    ACTION,
    FROM_START,
    INFO,
    LOGIN,
    OPTIONS,
    RUNNING,
    START,
    accept,
    ask_permission,
    call,
    chunk,
    dismiss,
    encode,
    idle,
    initialize,
    message,
    new,
    permit,
    prompt,
    resume,
    session,
    state,
    terminal,
    turn,
    update,
    user,
)

INVENTED = "dragoman-invented-1"
BEGUN = [*session(), prompt(), accept(), user(), RUNNING]
GIVEN = [*session(), *turn(message("four", "m1"))]
TWICE = [*GIVEN, *turn(message("six", "m2"), id_=3, text="goodbye", message_id="u2")]
HISTORY = [user(), message("four", "m1")]
LATER = [user("goodbye", "u2"), message("six", "m2")]
REPLAYED = [*GIVEN, resume(**FROM_START), *HISTORY, idle(), respond(9)]
CAN_CANCEL = {"capabilities": {"cancel": {}}}
EXIT = {"exitStatus": {"exitCode": 0}}
ASKED = [*BEGUN, START, ask_permission()]
PATCH = "diff --git /work/p/a /work/p/a\n--- /work/p/a\n+++ /work/p/a\n@@ -1 +1 @@\n-one\n+two\n"


def no_session(id_: int = 9, code: int = -32002, session_id: str = INVENTED) -> object:
    error = {"code": code, "message": "no", "data": {"sessionId": session_id}}
    return line("agent", {"id": id_, "error": error})


def diff(patch: str = PATCH, path: str = "/work/p/a") -> object:
    content = {
        "type": "diff",
        "changes": [{"operation": "modify", "path": path}],
        "patch": {"format": "git_patch", "text": patch},
    }
    return call(title="Edit", content=[content])


def option(**fields: object) -> dict[str, object]:
    values = [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]
    plain = {"configId": "mode", "name": "Mode", "type": "select", "currentValue": "a", "options": values}
    return plain | fields


def ask_option(value: str = "b", id_: int = 7, name: str = "mode", kind: str = "id") -> object:
    params = {"sessionId": "s1", "configId": name, "type": kind, "value": value}
    return ask(id_, "session/set_config_option", params)


OPTIONAL = session(configOptions=[option()])
TWO_OPTIONS = [
    *session(configOptions=[option(), option(configId="model")]),
    ask_option("c", name="model"),
    refuse(7, -32602),
    ask_option("a"),
]
HELD = [*BEGUN, prompt(3), cancel(), idle("cancelled")]


def cancel_call(id_: str = "c1") -> object:
    return ask(7, "tool_call/cancel", {"sessionId": "s1", "toolCallId": id_})


def cancel_terminal(id_: str = "t1") -> object:
    return ask(7, "terminal/cancel", {"sessionId": "s1", "terminalId": id_})


def close(id_: int = 8, session_id: str = "s1") -> object:
    return ask(id_, "session/close", {"sessionId": session_id})


def hello(version: int = 2, **params: object) -> object:
    return ask("i", "initialize", {"protocolVersion": version, "capabilities": {}, "info": INFO} | params)


def login(method_id: str) -> object:
    return [ask(6, "auth/login", {"methodId": method_id}), respond(6)]


UNSUPPORTED = {"code": -32022, "message": "no", "data": {"requested": 0, "supported": [1, 2]}}

OWN = [
    Case("ACP-INIT-011", [hello(), respond("i", {"protocolVersion": 2, "capabilities": {}})], initialize()),
    Case(
        "ACP-INIT-012",
        [hello(0), line("agent", {"id": "i", "error": UNSUPPORTED | {"data": {"supported": [2]}}})],
        [hello(0), line("agent", {"id": "i", "error": UNSUPPORTED})],
    ),
    Case("ACP-INIT-012", [hello(0), refuse("i", -32602)], [hello(0), line("agent", {"id": "i", "error": UNSUPPORTED})]),
    Case("ACP-INIT-108", [ask("i", "initialize", {"protocolVersion": 2, "capabilities": {}})], initialize()),
    Case("ACP-RESUME-004", [*GIVEN, resume(), respond(9)], [*GIVEN, resume(), idle(), respond(9)]),
    Case("ACP-RESUME-004", [*GIVEN, resume(**FROM_START), idle(), *HISTORY, respond(9)], REPLAYED),
    Case(
        "ACP-RESUME-005",
        [*GIVEN, resume(replayFrom={"type": "_middle"}), idle(), respond(9)],
        [*GIVEN, resume(replayFrom={"type": "_middle"}), refuse(9, -32602)],
    ),
    Case("ACP-RESUME-102", [*GIVEN, resume(cwd="/elsewhere/q")], [*GIVEN, resume()]),
    Case(
        "ACP-LOAD-008",
        [*GIVEN, resume(**FROM_START), user("hello", "u9"), message("four", "m1"), idle(), respond(9)],
        REPLAYED,
    ),
    Case(
        "ACP-CLOSE-005",
        [*session(), close(session_id=INVENTED), refuse(8, -32002)],
        [*session(), close(session_id=INVENTED), respond(8)],
    ),
    Case(
        "ACP-CONFIG-011",
        [*OPTIONAL, ask_option("c"), refuse(7, -32603)],
        [*OPTIONAL, ask_option("c"), refuse(7, -32602)],
    ),
    Case(
        "ACP-CONFIG-011",
        [*TWO_OPTIONS, respond(7, {"configOptions": [option(), option(configId="model", currentValue="b")]})],
        [*TWO_OPTIONS, respond(7, {"configOptions": [option(), option(configId="model")]})],
    ),
    Case(
        "ACP-CONFIG-012",
        session(configOptions=[option(options=[{"value": "a", "name": "A"}, {"value": "a", "name": "B"}])]),
        OPTIONAL,
    ),
    Case(
        "ACP-CONFIG-013",
        [*OPTIONAL, ask_option("b", kind="_number"), respond(7, {"configOptions": [option(currentValue="b")]})],
        [*OPTIONAL, ask_option("b", kind="_number"), refuse(7, -32602)],
    ),
    Case(
        "ACP-PROMPT-010",
        [*session(), prompt(9, session=INVENTED), no_session(code=-32602)],
        [*session(), prompt(9, session=INVENTED), no_session()],
    ),
    Case(
        "ACP-PROMPT-010",
        [*session(), resume(session=INVENTED), no_session(session_id="s1")],
        [*session(), resume(session=INVENTED), no_session()],
    ),
    Case("ACP-PROMPT-011", [*session(), prompt(), respond(2)], GIVEN),
    Case("ACP-PROMPT-012", [*session(), prompt(), accept(), RUNNING, message("four", "m1"), idle()], GIVEN),
    Case("ACP-PROMPT-013", [*session(), prompt(), user(), RUNNING, message("four", "m1"), idle(), accept()], GIVEN),
    Case(
        "ACP-PROMPT-013",
        [*session(), prompt(), user(), RUNNING, message("four", "m1"), idle(), event("agent", "waited 60", 60.0)],
        GIVEN,
    ),
    Case("ACP-PROMPT-014", [*session(), prompt(), accept(), user(), message("four", "m1"), idle()], GIVEN),
    Case("ACP-PROMPT-014", [*session(), prompt(), accept(), user(), event("agent", "waited 60")], GIVEN),
    Case(
        "ACP-PROMPT-014",
        [*session(), prompt(), accept(), user(), message("four", "m1"), RUNNING, idle()],
        [*session(), message("welcome", "m0"), prompt(), accept(), user(), message("again", "m0"), RUNNING, idle()],
    ),
    Case(
        "ACP-PROMPT-014",
        [*session(), prompt(), accept(), user(), START, RUNNING, call("completed"), idle()],
        [
            *session(),
            terminal("t9"),
            state("running", background=[{"type": "terminal", "terminalId": "t9"}]),
            idle(background=[{"type": "terminal", "terminalId": "t9"}]),
            prompt(),
            accept(),
            user(),
            message("in the background", "m1"),
            state("running", background=[{"type": "terminal", "terminalId": "t9"}]),
            idle(background=[{"type": "terminal", "terminalId": "t9"}]),
        ],
    ),
    Case("ACP-PROMPT-015", [*BEGUN, message("four", "m1"), idle(None)], GIVEN),
    Case("ACP-PROMPT-016", [*BEGUN, message("four", "m1"), event("agent", "waited 60")], GIVEN, "warn"),
    Case(
        "ACP-PROMPT-017",
        [*ASKED, permit(after_s=1.0), call("in_progress"), call("completed"), idle()],
        [*ASKED, ACTION, permit(after_s=1.0), RUNNING, call("in_progress"), call("completed"), idle()],
        "warn",
    ),
    Case(
        "ACP-PROMPT-018",
        [*ASKED, ACTION, permit(), call("in_progress"), RUNNING, call("completed"), idle()],
        [*ASKED, ACTION, permit(), RUNNING, call("in_progress"), call("completed"), idle()],
    ),
    Case("ACP-PROMPT-019", [*session(), prompt(), user(), refuse(2, -32603)], [*session(), prompt(), user(), accept()]),
    Case(
        "ACP-PROMPT-020",
        [*session(), state("running", background=[]), idle()],
        [*session(), state("running", background=[]), idle(background=[])],
    ),
    Case(
        "ACP-PROMPT-021",
        [*session(), state("running", background=[{"type": "terminal", "terminalId": "t1"}])],
        [*session(), terminal(), state("running", background=[{"type": "terminal", "terminalId": "t1"}])],
    ),
    Case(
        "ACP-PROMPT-022",
        [
            *session(),
            START,
            state("running", background=[{"type": "tool_call", "toolCallId": "c1"}]),
            idle(background=[]),
        ],
        [
            *session(),
            START,
            state("running", background=[{"type": "tool_call", "toolCallId": "c1"}]),
            call("completed"),
            idle(background=[]),
        ],
    ),
    Case("ACP-PROMPT-104", [*session(), prompt(prompt=[])], [*session(), prompt()]),
    Case(
        "ACP-CANCEL-005",
        [*ASKED, cancel(), idle("cancelled")],
        [*ASKED, cancel(), notify("$/cancel_request", {"requestId": 90}, "agent"), dismiss(), idle("cancelled")],
    ),
    Case(
        "ACP-CANCEL-006",
        [*session(), prompt(), cancel(), refuse(2, -32603, after_s=3.0)],
        [*session(), prompt(), cancel(), refuse(2, -32800)],
    ),
    Case(
        "ACP-CANCEL-006",
        [*BEGUN, prompt(3), close(), idle("cancelled"), respond(8), event("agent", "waited 5")],
        [*BEGUN, prompt(3), close(), idle("cancelled"), respond(8), refuse(3, -32800), event("agent", "waited 5")],
    ),
    Case(
        "ACP-CANCEL-006",
        [*HELD, event("agent", "waited 5", 5.0)],
        [*HELD, refuse(3, -32800), event("agent", "waited 5", 5.0)],
    ),
    Case(
        "ACP-MSG-001",
        [*BEGUN, update("agent_message", content=[]), idle()],
        [*BEGUN, update("agent_message", messageId="m1", content=[]), idle()],
    ),
    Case("ACP-MSG-002", [*BEGUN, chunk("mine", "u1"), idle()], [*BEGUN, chunk("mine", "m1"), idle()]),
    Case("ACP-TOOL-011", [*BEGUN, call("completed"), idle()], [*BEGUN, call("completed", title="Edit"), idle()]),
    Case("ACP-TOOL-012", [*BEGUN, diff(PATCH.replace("/work/p/a", "a/a")), idle()], [*BEGUN, diff(), idle()]),
    Case("ACP-TOOL-012", [*BEGUN, diff("From: me\n\n" + PATCH), idle()], [*BEGUN, diff(), idle()]),
    Case("ACP-TOOL-013", [*BEGUN, diff(path="/work/p/b"), idle()], [*BEGUN, diff(), idle()]),
    Case(
        "ACP-TOOL-014",
        [*BEGUN, call("in_progress", title="Run", **CAN_CANCEL), call("completed"), idle()],
        [*BEGUN, call("in_progress", title="Run", **CAN_CANCEL), call("completed", capabilities=None), idle()],
    ),
    Case(
        "ACP-TOOL-015", [*BEGUN, cancel_call(INVENTED), respond(7)], [*BEGUN, cancel_call(INVENTED), refuse(7, -32602)]
    ),
    Case(
        "ACP-TOOL-016",
        [*BEGUN, call("in_progress", title="Run", **CAN_CANCEL), cancel_call(), respond(7), idle()],
        [
            *BEGUN,
            call("in_progress", title="Run", **CAN_CANCEL),
            cancel_call(),
            respond(7),
            call("cancelled", capabilities={}),
            idle(),
        ],
    ),
    Case(
        "ACP-TOOL-017",
        [*BEGUN, call("in_progress", title="Run", **CAN_CANCEL), cancel_call(), refuse(7, -32601)],
        [*BEGUN, call("in_progress", title="Run", **CAN_CANCEL), cancel_call(), refuse(7, -32602)],
    ),
    Case(
        "ACP-TOOL-101",
        [*BEGUN, call("in_progress", title="Run"), cancel_call()],
        [*BEGUN, call("in_progress", title="Run", **CAN_CANCEL), cancel_call()],
    ),
    Case(
        "ACP-PERM-007",
        [*BEGUN, ask_permission(subject={"type": "command", "command": "ls", "cwd": "p"})],
        [*BEGUN, ask_permission(subject={"type": "command", "command": "ls", "cwd": "/work/p"})],
    ),
    Case(
        "ACP-PERM-008",
        [*ASKED, permit(option="maybe"), call("in_progress")],
        [*ASKED, permit(option="maybe"), call("failed")],
    ),
    Case(
        "ACP-PERM-008",
        [*ASKED, respond(90, {"outcome": {"outcome": "_later"}}, "client"), call("in_progress")],
        [*ASKED, respond(90, {"outcome": {"outcome": "_later"}}, "client"), call("failed")],
    ),
    Case("ACP-TERM-007", [*BEGUN, terminal(output="text"), idle()], [*BEGUN, terminal(output={"data": ""}), idle()]),
    Case(
        "ACP-TERM-008",
        [*BEGUN, update("terminal_output_chunk", terminalId="t1", data="plain text"), idle()],
        [*BEGUN, update("terminal_output_chunk", terminalId="t1", data=encode("text")), idle()],
    ),
    Case(
        "ACP-TERM-009",
        [*BEGUN, terminal(command="ls"), terminal(**EXIT), terminal(command="pwd"), idle()],
        [*BEGUN, terminal(command="ls"), terminal(**EXIT), terminal(output={"data": ""}), idle()],
    ),
    Case(
        "ACP-TERM-010",
        [*BEGUN, terminal(**CAN_CANCEL), terminal(**EXIT), idle()],
        [*BEGUN, terminal(**CAN_CANCEL), terminal(capabilities=None, **EXIT), idle()],
    ),
    Case(
        "ACP-TERM-011",
        [*BEGUN, cancel_terminal(INVENTED), refuse(7, -32603)],
        [*BEGUN, cancel_terminal(INVENTED), refuse(7, -32602)],
    ),
    Case(
        "ACP-TERM-012",
        [*BEGUN, terminal(**CAN_CANCEL), cancel_terminal(), respond(7), idle()],
        [*BEGUN, terminal(**CAN_CANCEL), cancel_terminal(), respond(7), terminal(capabilities={}, **EXIT), idle()],
    ),
    Case(
        "ACP-TERM-013",
        [*BEGUN, terminal(**CAN_CANCEL), cancel_terminal(), refuse(7, -32601)],
        [*BEGUN, terminal(**CAN_CANCEL), cancel_terminal(), respond(7)],
    ),
    Case("ACP-TERM-108", [*BEGUN, terminal(), cancel_terminal()], [*BEGUN, terminal(**CAN_CANCEL), cancel_terminal()]),
    Case(
        "ACP-CMD-004",
        session(availableCommands=[{"type": "command", "name": "do it", "description": "d"}]),
        session(availableCommands=[{"type": "command", "name": "do", "description": "d"}]),
    ),
    Case(
        "ACP-CONTENT-004",
        [*session(), prompt(prompt=[{"type": "_smell"}]), accept()],
        [*session(), prompt(prompt=[{"type": "_smell"}]), refuse(2, -32602)],
    ),
    Case("ACP-EXT-006", [*BEGUN, call("done", title="Run"), idle()], [*BEGUN, call("_done", title="Run"), idle()]),
    Case("ACP-EXT-006", [*BEGUN, update("tool_call", toolCallId="c1", title="Run")], [*BEGUN, START]),
    Case(
        "ACP-EXT-106",
        [*session(), prompt(prompt=[{"type": "smell"}])],
        [*session(), prompt(prompt=[{"type": "_smell"}])],
    ),
    Case(
        "ACP-MCP-006",
        [*initialize(), *new(mcpServers=[{"type": "_pigeon", "name": "p"}])],
        [*initialize(), new(mcpServers=[{"type": "_pigeon", "name": "p"}])[0], refuse(1, -32602)],
    ),
    Case("ACP-MCP-007", [*initialize(), new()[0], refuse(1, -32602)], session()),
]
"""One case for each rule that only version 2 has."""

SHARED = [
    Case(
        "ACP-INIT-003",
        [hello(65_535), respond("i", {"protocolVersion": 65_535, "info": INFO})],
        [hello(65_535), respond("i", {"protocolVersion": 2, "info": INFO})],
    ),
    Case("ACP-INIT-001", [hello(), refuse("i", -32603)], initialize()),
    Case(
        "ACP-INIT-006",
        [*initialize(authMethods=[LOGIN]), ask(7, "auth/logout"), refuse(7, -32601)],
        [*initialize(authMethods=[LOGIN]), ask(7, "auth/logout"), respond(7)],
    ),
    Case(
        "ACP-INIT-007",
        [*initialize(), ask(7, "session/list"), refuse(7, -32601)],
        [*initialize(), ask(7, "session/list"), respond(7, {"sessions": []})],
    ),
    Case(
        "ACP-AUTH-005",
        [*initialize(authMethods=[LOGIN]), ask(7, "auth/login", {"methodId": "magic"}), respond(7)],
        [*initialize(authMethods=[LOGIN]), ask(7, "auth/login", {"methodId": "magic"}), refuse(7, -32602)],
    ),
    Case(
        "ACP-AUTH-101",
        [*initialize(authMethods=[LOGIN]), ask(7, "auth/login", {"methodId": "magic"})],
        [*initialize(authMethods=[LOGIN]), ask(7, "auth/login", {"methodId": "login"})],
    ),
    Case(
        "ACP-AUTH-102",
        [*initialize(), ask(7, "auth/logout")],
        [*initialize(authMethods=[LOGIN]), ask(7, "auth/logout")],
    ),
    Case(
        "ACP-NEW-102",
        [*initialize({"session": {}}), *new(additionalDirectories=["/q"])],
        [*initialize(), *new(additionalDirectories=["/q"])],
    ),
    Case(
        "ACP-MCP-102",
        [*initialize({"session": {}}), *new(mcpServers=[{"type": "stdio", "name": "m", "command": "/bin/m"}])],
        [*initialize(), *new(mcpServers=[{"type": "stdio", "name": "m", "command": "/bin/m"}])],
    ),
    Case(
        "ACP-MCP-004",
        [*initialize(), new(mcpServers=[{"type": "stdio", "name": "m", "command": "/bin/m"}])[0], refuse(1, -32602)],
        [*initialize(), *new(mcpServers=[{"type": "stdio", "name": "m", "command": "/bin/m"}])],
    ),
    Case(
        "ACP-MCP-101",
        [*initialize(), *new(mcpServers=[{"name": "m", "command": "/bin/m"}])],
        [*initialize(), *new(mcpServers=[])],
    ),
    Case(
        "ACP-WIRE-011",
        [*BEGUN, prompt(3), message("four", "m1"), idle(), event("agent", "waited 5", 5.0)],
        [*BEGUN, prompt(3), message("four", "m1"), idle(), accept(3, "u2"), user("hello", "u2"), RUNNING, idle()],
    ),
    Case("ACP-NEW-101", [*GIVEN, resume(cwd="here")], [*GIVEN, resume()]),
    Case(
        "ACP-INIT-013",
        [hello(), respond("i", {"protocolVersion": 2, "agentCapabilities": {}, "info": INFO})],
        initialize(),
    ),
    Case(
        "ACP-INIT-109",
        [ask("i", "initialize", {"protocolVersion": 2, "clientCapabilities": {}, "info": INFO})],
        initialize(),
    ),
    Case(
        "ACP-INIT-001",
        [*initialize(authMethods=[{"type": "agent", "id": "key", "name": "A key"}]), *login("key")],
        initialize(),
    ),
    Case("ACP-INIT-007", [*GIVEN, close(), respond(8), resume(**FROM_START), refuse(9, -32601)], GIVEN),
    Case("ACP-LOAD-001", [*GIVEN, resume(**FROM_START), idle(), respond(9)], REPLAYED),
    Case("ACP-LOAD-002", [*REPLAYED, user("late", "u7")], REPLAYED),
    Case("ACP-LOAD-002", [*GIVEN, resume(**FROM_START), idle(), respond(9), *HISTORY], REPLAYED),
    Case("ACP-LOAD-004", [*GIVEN, resume(**FROM_START), message("four", "m1"), idle(), respond(9)], REPLAYED),
    Case(
        "ACP-LOAD-005",
        [*TWICE, resume(**FROM_START), *LATER, *HISTORY, idle(), respond(9)],
        [*TWICE, resume(**FROM_START), *HISTORY, *LATER, idle(), respond(9)],
    ),
    Case(
        "ACP-LOAD-006",
        [*TWICE, resume(**FROM_START), *HISTORY, idle(), respond(9)],
        [*TWICE, resume(**FROM_START), *HISTORY, *LATER, idle(), respond(9)],
    ),
    Case("ACP-RESUME-001", [*GIVEN, resume(), *HISTORY, idle(), respond(9)], [*GIVEN, resume(), idle(), respond(9)]),
    Case(
        "ACP-RESUME-002",
        [*session(), resume(session=INVENTED), respond(9)],
        [*session(), resume(session=INVENTED), no_session()],
    ),
    Case("ACP-RESUME-003", [*GIVEN, resume(), refuse(9, -32603)], [*GIVEN, resume(), idle(), respond(9)], "warn"),
    Case("ACP-CLOSE-001", [*BEGUN, close(), respond(8)], [*BEGUN, close(), idle("cancelled"), respond(8)]),
    Case(
        "ACP-CLOSE-003",
        [*GIVEN, close(), respond(8), prompt(3), accept(3)],
        [*GIVEN, close(), respond(8), prompt(3), refuse(3, -32002)],
    ),
    Case(
        "ACP-CLOSE-003",
        [*GIVEN, close(), respond(8), prompt(3), user("hello", "u2"), accept(3, "u2"), RUNNING, idle()],
        [*GIVEN, close(), respond(8), prompt(3), refuse(3, -32002)],
    ),
    Case(
        "ACP-CLOSE-004",
        [*GIVEN, close(), respond(8), chunk("more", "m7")],
        [*GIVEN, close(), respond(8), ask(7, "session/list")],
    ),
    Case(
        "ACP-CONFIG-003",
        [*OPTIONAL, ask_option(), respond(7, {"configOptions": [option()]})],
        [*OPTIONAL, ask_option(), respond(7, {"configOptions": [option(currentValue="b")]})],
    ),
    Case("ACP-CONFIG-005", session(configOptions=[option(), option()]), OPTIONAL),
    Case("ACP-CONFIG-102", [*OPTIONAL, ask_option(name="none")], [*OPTIONAL, ask_option()]),
    Case(
        "ACP-PROMPT-003",
        [*session(), prompt(prompt=[{"type": "resource_link", "uri": "file:///a", "name": "a"}]), refuse(2, -32602)],
        [
            *session(),
            prompt(prompt=[{"type": "text", "text": "x"}, {"type": "resource_link", "uri": "file:///a", "name": "a"}]),
            accept(),
        ],
    ),
    Case("ACP-PROMPT-006", [*BEGUN, idle("cancelled")], GIVEN),
    Case(
        "ACP-PROMPT-101",
        [*session({"session": {}}), prompt(prompt=[{"type": "image", "data": "", "mimeType": "image/png"}])],
        [*session(), prompt(prompt=[{"type": "image", "data": "", "mimeType": "image/png"}])],
    ),
    Case("ACP-CANCEL-001", [*BEGUN, cancel(), idle(after_s=3.0)], [*BEGUN, cancel(), idle("cancelled")]),
    Case("ACP-PROMPT-015", [*BEGUN, cancel(), idle(None, after_s=3.0)], [*BEGUN, cancel(), idle("cancelled")]),
    Case("ACP-EXT-006", [*BEGUN, cancel(), idle("aborted", after_s=3.0)], [*BEGUN, cancel(), idle("cancelled")]),
    Case("ACP-CANCEL-002", [*BEGUN, cancel(), idle("error", after_s=3.0)], [*BEGUN, cancel(), idle("cancelled")]),
    Case(
        "ACP-CANCEL-003",
        [*BEGUN, START, cancel(), idle("cancelled"), call("failed")],
        [*BEGUN, START, cancel(), call("cancelled"), idle("cancelled")],
    ),
    Case("ACP-CANCEL-004", [*BEGUN, cancel(), event("agent", "waited 60")], [*BEGUN, cancel(), idle("cancelled")]),
    Case(
        "ACP-TOOL-004",
        [*BEGUN, call("completed", title="Run"), call("failed"), idle()],
        [*BEGUN, call("completed", title="Run"), call(rawOutput=1), idle()],
    ),
    Case(
        "ACP-TOOL-005",
        [*BEGUN, call(title="Run", locations=[{"path": "a"}]), idle()],
        [*BEGUN, call(title="Run", locations=[{"path": "/a"}]), idle()],
    ),
    Case(
        "ACP-TOOL-006",
        [*ASKED, permit(option="no"), call("completed"), idle()],
        [*BEGUN, START, call("in_progress"), call("completed"), idle()],
    ),
    Case(
        "ACP-TOOL-008",
        [*ASKED, permit(), call("completed"), idle()],
        [*ASKED, permit(), call("in_progress"), call("completed"), idle()],
    ),
    Case(
        "ACP-TOOL-009",
        [*BEGUN, call(title="Run", locations=[{"path": "/a", "line": 0}]), idle()],
        [*BEGUN, call(title="Run", locations=[{"path": "/a", "line": 1}]), idle()],
    ),
    Case("ACP-TOOL-010", [*BEGUN, call(title=7), idle()], [*BEGUN, START, idle()]),
    Case("ACP-PERM-002", [*BEGUN, START, ask_permission(options=[OPTIONS[0], OPTIONS[0]])], ASKED),
    Case("ACP-PERM-004", [*ASKED, call("in_progress")], [*ASKED, permit(), call("in_progress")]),
    Case("ACP-PERM-006", [*BEGUN, START, ask_permission(title=None)], ASKED),
    Case("ACP-PERM-102", [*ASKED, permit(option="maybe")], [*ASKED, permit()]),
    Case("ACP-TERM-002", [*BEGUN, terminal(cwd="p"), idle()], [*BEGUN, terminal(cwd="/p"), idle()]),
    Case(
        "ACP-PLAN-001",
        [*BEGUN, update("plan_update", plan={"type": "items", "planId": "p"}), idle()],
        [*BEGUN, update("plan_update", plan={"type": "items", "planId": "p", "entries": []}), idle()],
    ),
    Case(
        "ACP-CMD-002",
        session(availableCommands=[{"type": "command", "name": "do", "description": "d"}] * 2),
        session(availableCommands=[{"type": "command", "name": "do", "description": "d"}]),
    ),
    Case(
        "ACP-CONTENT-002",
        [
            *BEGUN,
            update("agent_message", messageId="m", content=[{"type": "image", "data": "?", "mimeType": "image/png"}]),
            idle(),
        ],
        [
            *BEGUN,
            update("agent_message", messageId="m", content=[{"type": "image", "data": "", "mimeType": "image/png"}]),
            idle(),
        ],
    ),
    Case(
        "ACP-TERM-007",
        [*BEGUN, terminal(**CAN_CANCEL), terminal(exitStatus=0, capabilities=None), idle()],
        [*BEGUN, terminal(**CAN_CANCEL), terminal(**EXIT, capabilities=None), idle()],
    ),
    Case(
        "ACP-TERM-008",
        [*BEGUN, update("terminal_output_chunk", terminalId="t1", data=encode("a") + "="), idle()],
        [*BEGUN, update("terminal_output_chunk", terminalId="t1", data=encode("a")), idle()],
    ),
    Case("ACP-EXT-001", [*BEGUN, call(title="Run", mine=1), idle()], [*BEGUN, START, idle()]),
    Case("ACP-EXT-002", [*BEGUN, ask(5, "fs/read_text_file", {}, "agent")], [*BEGUN, ask(5, "_mine", {}, "agent")]),
    Case("ACP-EXT-102", [*session(), ask(5, "session/load", {})], [*session(), ask(5, "_mine", {})]),
    Case(
        "ACP-WIRE-020",
        [*BEGUN, update("usage_update", used="many", size=1), idle()],
        [*BEGUN, update("usage_update", used=1, size=1), idle()],
    ),
]
"""Cases for shared rules for which version 2 has other names or procedures."""

CASES = [*OWN, *SHARED]
