from tests.check.judge.cases.case import Case
from tests.check.judge.talking import (
    ask,
    ask_permission,
    call,
    chunk,
    end,
    event,
    initialize,
    line,
    notify,
    permit,
    prompt,
    raw,
    refuse,
    respond,
    session,
    update,
)

HELLO = initialize()
PING = [ask(7, "session/list"), refuse(7, -32601)]
"""A request that any agent answers, even if it is not advertised."""
BIG = "x" * 70_000
CLIENT_PING = [ask(70, "_ping", {}, "agent"), refuse(70, -32601, "client")]
OPEN = session({"loadSession": True})

ASKED = [*session(), prompt(), call(), ask_permission("ask")]

READING = [
    *session(client={"fs": {"readTextFile": True}}),
    ask(70, "fs/read_text_file", {"sessionId": "s1", "path": "/work/p/a"}, "agent"),
]

CASES = [
    Case("ACP-WIRE-001", [*HELLO, raw("agent", "Starting up...")], HELLO),
    Case("ACP-WIRE-002", [*HELLO, raw("agent", b'{"jsonrpc":"2.0","method":"_x","params":{"a":"\xff"}}')], HELLO),
    Case(
        "ACP-WIRE-003",
        [
            *HELLO,
            raw("agent", "{"),
            raw("agent", '  "jsonrpc": "2.0",'),
            raw("agent", '  "method": "_x"'),
            raw("agent", "}"),
        ],
        HELLO,
    ),
    Case("ACP-WIRE-001", [*HELLO, raw("agent", "")], HELLO, "warn"),
    Case("ACP-WIRE-004", [*HELLO, raw("agent", '{"method": "_x"}')], HELLO),
    Case(
        "ACP-WIRE-004",
        [*HELLO, PING[0], line("agent", {"id": 7, "error": {"code": -32601, "message": "no"}, "result": None})],
        [*HELLO, *PING],
    ),
    Case(
        "ACP-WIRE-004",
        [*HELLO, ask(7, "_ping"), line("agent", {"id": 7, "error": None, "result": {}})],
        [*HELLO, ask(7, "_ping"), respond(7)],
    ),
    Case(
        "ACP-WIRE-004",
        [*HELLO, PING[0], line("agent", {"error": {"code": -32601, "message": "no"}}), event("agent", "waited 5", 5.0)],
        [*HELLO, *PING],
    ),
    Case(
        "ACP-WIRE-005",
        [*HELLO, ask("7", "session/list"), refuse(7, -32601)],
        [*HELLO, ask("7", "session/list"), refuse("7", -32601)],
    ),
    Case("ACP-WIRE-006", [*HELLO, *PING, refuse(7, -32601)], [*HELLO, *PING]),
    Case(
        "ACP-WIRE-007",
        [*HELLO, ask(1, "_a", {}, "agent"), ask(1, "_b", {}, "agent")],
        [*HELLO, ask(1, "_a", {}, "agent"), ask(2, "_b", {}, "agent")],
    ),
    Case(
        "ACP-WIRE-008",
        [*HELLO, notify("_hm"), refuse(None, -32601), *PING],
        [*HELLO, notify("_hm"), *PING],
    ),
    Case(
        "ACP-WIRE-009",
        [*HELLO, ask(7, "session/list"), line("agent", {"id": 7, "error": {"code": "E_LIST", "message": "no"}})],
        [*HELLO, *PING],
    ),
    Case(
        "ACP-WIRE-009",
        [
            *HELLO,
            ask(7, "session/new", {"mcpServers": []}),
            line("agent", {"id": 7, "error": {"code": "-32602", "message": "no"}}),
        ],
        [*HELLO, *PING],
    ),
    Case(
        "ACP-WIRE-010",
        [*HELLO, ask(7, "no/such"), respond(7)],
        [*HELLO, ask(7, "no/such"), refuse(7, -32601)],
    ),
    Case(
        "ACP-WIRE-011",
        [*HELLO, ask(6, "session/list"), event("agent", "waited 5", 5.0), *PING],
        [*HELLO, *PING, event("agent", "waited 5", 5.0)],
    ),
    Case(
        "ACP-WIRE-011",
        [*HELLO, ask(7, "session/list"), event("agent", "waited 5", 5.0)],
        [*HELLO, *PING, event("agent", "waited 5", 5.0)],
        "warn",
    ),
    Case(
        "ACP-WIRE-012",
        [*HELLO, raw("client", "garbage"), PING[0], event("agent", "waited 5", 5.0)],
        [*HELLO, raw("client", "garbage"), refuse(None, -32700), *PING, event("agent", "waited 5", 5.0)],
    ),
    Case(
        "ACP-WIRE-012",
        [*HELLO, raw("client", "garbage"), event("agent", "exited 1")],
        [*HELLO, raw("client", "garbage"), refuse(None, -32700), *PING],
    ),
    Case(
        "ACP-WIRE-013",
        [*HELLO, raw("client", "garbage"), *PING],
        [*HELLO, raw("client", "garbage"), refuse(None, -32700), *PING],
        "warn",
    ),
    Case(
        "ACP-WIRE-014",
        [*HELLO, ask(7, "session/list", {"_meta": {"x": BIG}}), event("agent", "waited 5", 5.0)],
        [*HELLO, ask(7, "session/list", {"_meta": {"x": BIG}}), refuse(7, -32601)],
    ),
    Case(
        "ACP-WIRE-014",
        [
            *HELLO,
            ask(7, "session/list", {"_meta": {"x": BIG}}),
            refuse(None, -32700),
            refuse(None, -32700),
            event("agent", "waited 5", 5.0),
        ],
        [*HELLO, ask(7, "session/list", {"_meta": {"x": BIG}}), refuse(7, -32601)],
    ),
    Case(
        "ACP-WIRE-015",
        [*HELLO, ask(7, "session/new", {"mcpServers": []}), respond(7, {"sessionId": "s1"})],
        [*HELLO, ask(7, "session/new", {"mcpServers": []}), refuse(7, -32602)],
        "warn",
    ),
    Case(
        "ACP-WIRE-016",
        [*HELLO, ask(7, "session/new", {"mcpServers": []}), refuse(7, -32603)],
        [*HELLO, ask(7, "session/new", {"mcpServers": []}), refuse(7, -32602)],
        "warn",
    ),
    Case(
        "ACP-WIRE-017",
        [*HELLO, event("agent", "stdin closed"), event("agent", "killed", 5.0)],
        [*HELLO, event("agent", "stdin closed"), event("agent", "exited 0")],
    ),
    Case("ACP-WIRE-018", [*HELLO, event("agent", "orphans 2")], [*HELLO, event("agent", "orphans 0")]),
    Case(
        "ACP-WIRE-019",
        [*HELLO, event("agent", "exited 1")],
        [*HELLO, event("agent", "stdin closed"), event("agent", "exited 0")],
    ),
    Case(
        "ACP-WIRE-020",
        [
            *OPEN,
            notify("session/update", {"sessionId": 5, "update": {"sessionUpdate": "plan", "entries": []}}, "agent"),
        ],
        OPEN,
    ),
    Case(
        "ACP-WIRE-021",
        [
            *OPEN,
            prompt(),
            notify(
                "session/update",
                {
                    "sessionId": "s1",
                    "update": {"type": "agent_message_chunk", "content": {"type": "text", "text": "a"}},
                },
                "agent",
            ),
        ],
        [*OPEN, prompt(), chunk()],
    ),
    Case(
        "ACP-WIRE-022",
        [*OPEN, prompt(), update("tool_call", tool_call_id="c1", title="Edit")],
        [*OPEN, prompt(), chunk()],
    ),
    Case(
        "ACP-WIRE-023",
        [
            *OPEN,
            prompt(),
            line(
                "agent",
                {
                    "id": 5,
                    "method": "session/update",
                    "params": {"sessionId": "s1", "update": {"sessionUpdate": "plan", "entries": []}},
                },
            ),
        ],
        READING,
    ),
    Case(
        "ACP-WIRE-024",
        [*OPEN, ask(70, "session/list", {}, "agent")],
        READING,
    ),
    Case(
        "ACP-WIRE-025",
        [*HELLO, ask(7, "session/list"), notify("$/cancel_request", {"requestId": 7}), refuse(7, -32603, after_s=3.0)],
        [*HELLO, ask(7, "session/list"), notify("$/cancel_request", {"requestId": 7}), refuse(7, -32800, after_s=3.0)],
    ),
    Case("ACP-WIRE-101", [*HELLO, raw("client", "hello?")], HELLO),
    Case("ACP-WIRE-102", [*HELLO, raw("client", b'{"jsonrpc":"2.0","method":"_x","params":{"a":"\xff"}}')], HELLO),
    Case("ACP-WIRE-103", [*HELLO, raw("client", '[{"jsonrpc":"2.0","method":"_x"}]')], HELLO),
    Case("ACP-WIRE-104", [*HELLO, raw("client", '{"jsonrpc": "1.0", "method": "_x"}')], HELLO),
    Case(
        "ACP-WIRE-105",
        [*HELLO, ask("p", "_ping", {}, "agent"), refuse(0, -32601, "client")],
        [*HELLO, ask("p", "_ping", {}, "agent"), refuse("p", -32601, "client")],
    ),
    Case("ACP-WIRE-106", [*HELLO, refuse(44, -32601, "client")], [*HELLO, *CLIENT_PING]),
    Case(
        "ACP-WIRE-107",
        [*HELLO, ask(1, "_a"), ask(1, "_b")],
        [*HELLO, ask(1, "_a"), ask(2, "_b")],
    ),
    Case(
        "ACP-WIRE-108",
        [*HELLO, notify("_hm", {}, "agent"), refuse(None, -32601, "client"), *CLIENT_PING],
        [*HELLO, notify("_hm", {}, "agent"), *CLIENT_PING],
    ),
    Case(
        "ACP-WIRE-108",
        [*ASKED, refuse(None, -32601, "client"), permit("ask")],
        [*ASKED, notify("_hm", {}, "agent"), permit("ask"), *CLIENT_PING],
    ),
    Case(
        "ACP-WIRE-108",
        [*ASKED, refuse(None, -32601, "client"), event("client", "killed")],
        [*ASKED, notify("_hm", {}, "agent"), permit("ask"), *CLIENT_PING],
    ),
    Case("ACP-WIRE-105", [*ASKED, refuse(None, -32601, "client")], [*ASKED, permit("ask")]),
    Case(
        "ACP-WIRE-109",
        [*HELLO, CLIENT_PING[0], line("client", {"id": 70, "error": {"message": "no"}})],
        [*HELLO, *CLIENT_PING],
    ),
    Case(
        "ACP-WIRE-109",
        [*HELLO, ask(70, "no/such", {}, "agent"), line("client", {"id": 70, "error": {"message": "no"}})],
        [*HELLO, *CLIENT_PING],
    ),
    Case(
        "ACP-WIRE-110",
        [*HELLO, ask(70, "no/such", {}, "agent"), respond(70, {}, "client")],
        [*HELLO, ask(70, "no/such", {}, "agent"), refuse(70, -32601, "client")],
    ),
    Case(
        "ACP-WIRE-111",
        [*HELLO, CLIENT_PING[0], event("client", "waited 5", 5.0)],
        [*HELLO, *CLIENT_PING],
    ),
    Case("ACP-WIRE-111", [*ASKED, event("client", "waited 10", 10.0)], [*ASKED, permit("ask")]),
    Case("ACP-WIRE-111", [*ASKED, end(), prompt(3)], [*ASKED, event("client", "waited 10", 10.0), permit("ask")]),
    Case(
        "ACP-WIRE-112",
        [*HELLO, raw("agent", "garbage"), event("client", "exited 1")],
        [*HELLO, raw("agent", "garbage"), *CLIENT_PING],
    ),
    Case(
        "ACP-WIRE-113",
        [*OPEN, prompt(5), event("agent", "exited 3"), event("client", "waited 5")],
        [*OPEN, prompt(5), event("agent", "exited 3"), event("client", "exited 1")],
    ),
    Case(
        "ACP-WIRE-114",
        [*OPEN, prompt(), chunk(BIG), event("client", "exited 1")],
        [*OPEN, prompt(), chunk(BIG), *CLIENT_PING],
    ),
    Case(
        "ACP-WIRE-115",
        [
            *OPEN,
            ask(70, "session/request_permission", {"sessionId": "s1"}, "agent"),
            respond(70, {"outcome": {"outcome": "cancelled"}}, "client"),
        ],
        [*OPEN, ask(70, "session/request_permission", {"sessionId": "s1"}, "agent"), refuse(70, -32602, "client")],
        "warn",
    ),
    Case("ACP-WIRE-120", [*OPEN, notify("session/cancel", {"sessionId": 5})], OPEN),
    Case(
        "ACP-WIRE-121",
        [*OPEN, prompt(prompt=[{"kind": "text", "text": "a"}])],
        [*OPEN, prompt()],
    ),
    Case("ACP-WIRE-122", [*OPEN, notify("session/cancel", {"session_id": "s1"})], OPEN),
    Case(
        "ACP-WIRE-123",
        [*OPEN, ask(5, "session/cancel", {"sessionId": "s1"})],
        [*OPEN, notify("session/cancel", {"sessionId": "s1"})],
    ),
    Case("ACP-WIRE-124", [*OPEN, ask(5, "fs/read_text_file", {"sessionId": "s1", "path": "/a"})], OPEN),
    Case(
        "ACP-WIRE-125",
        [
            *HELLO,
            CLIENT_PING[0],
            notify("$/cancel_request", {"requestId": 70}, "agent"),
            event("client", "waited 5", 5.0),
        ],
        [*HELLO, CLIENT_PING[0], notify("$/cancel_request", {"requestId": 70}, "agent"), refuse(70, -32800, "client")],
    ),
    Case("ACP-WIRE-026", [*HELLO, ask(1.5, "_ping", {}, "agent")], [*HELLO, ask(1, "_ping", {}, "agent")]),
    Case("ACP-WIRE-126", [*HELLO, ask(None, "_ping")], [*HELLO, ask("1", "_ping")]),
    Case("ACP-WIRE-126", [*HELLO, *[ask(None, "_ping")] * 2], [*HELLO, ask("1", "_ping")]),
]
