from tests.check.judge.cases.case import Case
from tests.check.judge.cases.list import known, listing, page
from tests.check.judge.cases.load import load
from tests.check.judge.talking import ask, chunk, end, prompt, refuse, respond, session, turn

ABLE = {"loadSession": True, "sessionCapabilities": {"close": {}, "list": {}}}
OPEN = session(ABLE)


def close(id_: int = 8) -> object:
    return ask(id_, "session/close", {"sessionId": "s1"})


LISTED = [*OPEN, listing(5), page(known(), id_=5)]

CASES = [
    Case(
        "ACP-CLOSE-001",
        [*OPEN, prompt(), close(), respond(8), end()],
        [*OPEN, prompt(), close(), end(2, "cancelled"), respond(8)],
    ),
    Case(
        "ACP-CLOSE-002",
        [*LISTED, close(), respond(8), listing(), page()],
        [*LISTED, close(), respond(8), listing(), page(known())],
    ),
    Case(
        "ACP-CLOSE-003",
        [*OPEN, close(), respond(8), *turn()],
        [*OPEN, close(), respond(8), prompt(), refuse(2, -32002)],
    ),
    Case(
        "ACP-CLOSE-004",
        [*OPEN, close(), respond(8), chunk()],
        [*OPEN, close(), respond(8), listing(), page()],
    ),
    Case("ACP-CLOSE-101", [*session(), close()], [*OPEN, close()]),
]
ALSO = [
    Case(
        "ACP-CLOSE-002",
        [*OPEN, *turn(chunk()), close(), respond(8), load(), refuse(9, -32002)],
        [*OPEN, *turn(chunk()), close(), respond(8), load(), chunk("hello", "user_message_chunk"), chunk(), respond(9)],
    ),
]
ROUTED = [*OPEN, *turn(chunk()), close(), respond(8), load()]
ALSO += [
    Case(
        "ACP-INIT-006",
        [*ROUTED, refuse(9, -32601)],
        [*ROUTED, chunk("hello", "user_message_chunk"), chunk(), respond(9)],
    ),
    Case("ACP-PROMPT-102", [*OPEN, close(), respond(8), prompt(3)], [*OPEN, prompt(3)]),
]
CASES += ALSO
