from tests.check.judge.cases.case import Case
from tests.check.judge.talking import (
    ask,
    ask_permission,
    call,
    event,
    initialize,
    new,
    permit,
    prompt,
    refuse,
    respond,
    session,
)


def hello(version: object = 1, id_: object = "i", **params: object) -> object:
    given = {"protocolVersion": version, "clientCapabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    return ask(id_, "initialize", given | params)


def welcome(version: object = 1, id_: object = "i", **answer: object) -> object:
    return respond(id_, {"protocolVersion": version, "agentInfo": {"name": "a", "version": "1"}} | answer)


LIST = {"sessionCapabilities": {"list": {}}}
KEEPING = session({"sessionCapabilities": {"delete": {}}})
READ = ask(70, "fs/read_text_file", {"sessionId": "s1", "path": "/work/p/a"}, "agent")

CASES = [
    Case(
        "ACP-INIT-109",
        [
            ask(
                "i",
                "initialize",
                {"protocolVersion": 1, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
            )
        ],
        [
            ask(
                "i",
                "initialize",
                {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
            )
        ],
    ),
    Case("ACP-INIT-001", [hello(), refuse("i", -32000)], [hello(), welcome()]),
    Case("ACP-INIT-002", [hello(), welcome("1")], [hello(), welcome()]),
    Case("ACP-INIT-003", [hello(4711), welcome(4711)], [hello(4711), welcome(1)]),
    Case(
        "ACP-INIT-004",
        [hello(), welcome(), hello(1, "j"), welcome(0, "j")],
        [hello(), welcome(), hello(1, "j"), welcome(1, "j")],
    ),
    Case("ACP-INIT-005", [hello(), respond("i", {"protocolVersion": 1})], [hello(), welcome()]),
    Case(
        "ACP-INIT-006",
        [*initialize(LIST), ask(3, "session/list"), refuse(3, -32601)],
        [*initialize(LIST), ask(3, "session/list"), respond(3, {"sessions": []})],
    ),
    Case("ACP-INIT-007", [*initialize(), new()[0], refuse(1, -32601)], [*initialize(), *new()]),
    Case(
        "ACP-INIT-008",
        [*initialize(), ask(3, "session/list"), respond(3, {"sessions": []})],
        [*initialize(), ask(3, "session/list"), refuse(3, -32601)],
        "warn",
    ),
    Case(
        "ACP-INIT-009",
        [hello(clientCapabilities={"telepathy": {}}), refuse("i", -32602)],
        [hello(clientCapabilities={"telepathy": {}}), welcome()],
    ),
    Case("ACP-INIT-010", [hello(), welcome(2)], [hello(), welcome()]),
    Case(
        "ACP-INIT-013",
        [hello(), welcome(capabilities=LIST), ask(3, "session/list"), respond(3, {"sessions": []})],
        [hello(), welcome(agentCapabilities=LIST), ask(3, "session/list"), respond(3, {"sessions": []})],
    ),
    Case(
        "ACP-INIT-006",
        [*KEEPING, ask(3, "session/delete", {"sessionId": "dragoman-invented-1"}), refuse(3, -32601)],
        [*KEEPING, ask(3, "session/delete", {"sessionId": "dragoman-invented-1"}), respond(3)],
    ),
    Case("ACP-INIT-101", new(), [*initialize(), *new()]),
    Case("ACP-INIT-102", [hello("2025-06-18")], [hello()]),
    Case(
        "ACP-INIT-103",
        [hello(), welcome(2), new()[0]],
        [hello(), welcome(2), event("agent", "stdin closed")],
    ),
    Case("ACP-INIT-105", [ask("i", "initialize", {"protocolVersion": 1})], [hello()]),
    Case(
        "ACP-INIT-106",
        [*session(client={"fs": {"readTextFile": True}}), READ, refuse(70, -32601, "client")],
        [*session(client={"fs": {"readTextFile": True}}), READ, respond(70, {"content": ""}, "client")],
    ),
    Case(
        "ACP-INIT-107",
        [*session(), prompt(), call(), ask_permission(), refuse(90, -32601, "client")],
        [*session(), prompt(), call(), ask_permission(), permit()],
    ),
]
