from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, chunk, initialize, new, refuse, respond, session, turn

ABLE = {"loadSession": True}


def load(session_id: str = "s1", id_: int = 9) -> object:
    return ask(id_, "session/load", {"sessionId": session_id, "cwd": "/work/p", "mcpServers": []})


ONCE = [*session(ABLE), *turn(chunk("four"))]
TWICE = [*ONCE, *turn(chunk("six"), id_=3, text="goodbye")]
ASKED = chunk("hello", "user_message_chunk")
AGAIN = chunk("goodbye", "user_message_chunk")
REPLAYED = [*ONCE, load(), ASKED, chunk("four"), respond(9)]

CASES = [
    Case("ACP-LOAD-001", [*ONCE, load(), respond(9)], REPLAYED),
    Case("ACP-LOAD-002", [*REPLAYED, chunk("late")], REPLAYED),
    Case("ACP-LOAD-002", [*ONCE, load(), respond(9), ASKED, chunk("four")], REPLAYED),
    Case(
        "ACP-LOAD-003",
        [*session(ABLE), load("dragoman-invented-1"), respond(9)],
        [*session(ABLE), load("dragoman-invented-1"), refuse(9, -32002)],
    ),
    Case("ACP-LOAD-004", [*ONCE, load(), chunk("four"), respond(9)], REPLAYED),
    Case(
        "ACP-LOAD-005",
        [*TWICE, load(), AGAIN, chunk("six"), ASKED, chunk("four"), respond(9)],
        [*TWICE, load(), ASKED, chunk("four"), AGAIN, chunk("six"), respond(9)],
    ),
    Case("ACP-LOAD-005", [*ONCE, load(), chunk("four"), ASKED, respond(9)], REPLAYED),
    Case(
        "ACP-LOAD-006",
        [*TWICE, load(), ASKED, chunk("four"), respond(9)],
        [*TWICE, load(), ASKED, chunk("four"), AGAIN, chunk("six"), respond(9)],
    ),
    Case("ACP-LOAD-006", [*ONCE, load(), *[ASKED, chunk("four")] * 2, respond(9)], REPLAYED),
    Case(
        "ACP-LOAD-006",
        [*ONCE, *turn(chunk("four"), id_=3), load(), *[ASKED, chunk("four")] * 4, respond(9)],
        [*ONCE, *turn(chunk("four"), id_=3), load(), *[ASKED, chunk("four")] * 2, respond(9)],
    ),
    Case("ACP-LOAD-007", [*ONCE, load(), refuse(9, -32603)], REPLAYED, "warn"),
    Case("ACP-LOAD-101", [*initialize(), *new(), load()], [*session(ABLE), load()]),
]
