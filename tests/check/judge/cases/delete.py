from tests.check.judge.cases.case import Case
from tests.check.judge.cases.list import known, listing, page
from tests.check.judge.talking import ask, refuse, respond, session

OPEN = session({"sessionCapabilities": {"delete": {}, "list": {}}})


def delete(session_id: str = "s1", id_: int = 8) -> object:
    return ask(id_, "session/delete", {"sessionId": session_id})


CASES = [
    Case(
        "ACP-DELETE-001",
        [*OPEN, delete(), respond(8), listing(), page(known())],
        [*OPEN, delete(), respond(8), listing(), page()],
    ),
    Case(
        "ACP-DELETE-002",
        [*OPEN, delete(), respond(8), delete(id_=9), refuse(9, -32002)],
        [*OPEN, delete(), respond(8), delete(id_=9), respond(9)],
    ),
    Case("ACP-DELETE-101", [*session(), delete()], [*OPEN, delete()]),
]
