from tests.check.judge.cases.case import Case
from tests.check.judge.cases.wire import CLIENT_PING, PING
from tests.check.judge.talking import ask, event, notify, refuse, respond, session, update

OPEN = session()
TRACE = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01"
INVENTED = "_dragoman-invented-method"


def info(**fields: object) -> object:
    return update("session_info_update", title="a", **fields)


CASES = [
    Case("ACP-EXT-001", [*OPEN, info(mood="good")], [*OPEN, info(_meta={"mood": "good"})]),
    Case("ACP-EXT-002", [*OPEN, notify("mine/hello", {}, "agent")], [*OPEN, notify("_mine/hello", {}, "agent")]),
    Case("ACP-EXT-003", [*OPEN, ask(5, INVENTED), respond(5)], [*OPEN, ask(5, INVENTED), refuse(5, -32601)]),
    Case("ACP-EXT-004", [*OPEN, notify("_hm"), event("agent", "exited 1")], [*OPEN, notify("_hm"), *PING]),
    Case(
        "ACP-EXT-005",
        [*OPEN, notify("_x", {"_meta": {"traceparent": "me"}}, "agent")],
        [*OPEN, notify("_x", {"_meta": {"traceparent": TRACE}}, "agent")],
    ),
    Case(
        "ACP-EXT-101",
        [*OPEN, notify("session/cancel", {"sessionId": "s1", "why": "bored"})],
        [*OPEN, notify("session/cancel", {"sessionId": "s1", "_meta": {"why": "bored"}})],
    ),
    Case("ACP-EXT-102", [*OPEN, notify("mine/hello")], [*OPEN, notify("_mine/hello")]),
    Case(
        "ACP-EXT-103",
        [*OPEN, ask(70, INVENTED, {}, "agent"), respond(70, {}, "client")],
        [*OPEN, ask(70, INVENTED, {}, "agent"), refuse(70, -32601, "client")],
    ),
    Case(
        "ACP-EXT-104",
        [*OPEN, notify("_hm", {}, "agent"), event("client", "exited 1")],
        [*OPEN, notify("_hm", {}, "agent"), *CLIENT_PING],
    ),
    Case(
        "ACP-EXT-105",
        [*OPEN, notify("_x", {"_meta": {"traceparent": "me"}})],
        [*OPEN, notify("_x", {"_meta": {"traceparent": TRACE}})],
    ),
]
