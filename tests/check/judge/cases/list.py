from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, refuse, respond, session

ABLE = {"sessionCapabilities": {"list": {}}}
ABLE_MORE = {"sessionCapabilities": {"list": {}, "additionalDirectories": {}}}
OPEN = session(ABLE)


def listing(id_: int = 9, **params: object) -> object:
    return ask(id_, "session/list", params)


def page(*sessions: object, id_: int = 9, **fields: object) -> object:
    return respond(id_, {"sessions": list(sessions)} | fields)


def known(id_: str = "s1", cwd: str = "/work/p", **fields: object) -> object:
    return {"sessionId": id_, "cwd": cwd} | fields


GOOD = [*OPEN, listing(), page(known())]

CASES = [
    Case("ACP-LIST-001", [*OPEN, listing(), page(known("s7", "p"))], GOOD),
    Case(
        "ACP-LIST-002",
        [*OPEN, listing(cwd="/elsewhere"), page(known())],
        [*OPEN, listing(cwd="/work/p/"), page(known())],
    ),
    Case("ACP-LIST-003", [*OPEN, listing(), page(known(cwd="/opt/agent"))], GOOD),
    Case(
        "ACP-LIST-004",
        [*OPEN, listing(cursor="dragoman-invented-1"), page(known())],
        [*OPEN, listing(cursor="dragoman-invented-1"), refuse(9, -32602)],
    ),
    Case("ACP-LIST-005", [*OPEN, listing(), page(known(), known())], GOOD),
    Case(
        "ACP-LIST-006",
        [*OPEN, listing(), page(known(updatedAt="last Tuesday"))],
        [*OPEN, listing(), page(known(updatedAt="2025-10-29T14:22:15Z"))],
    ),
    Case(
        "ACP-LIST-007",
        [*OPEN, listing(), page(nextCursor="c"), listing(10, cursor="c"), page(id_=10, nextCursor="c")],
        [*OPEN, listing(), page(nextCursor="c"), listing(10, cursor="c"), page(id_=10)],
    ),
    Case(
        "ACP-LIST-008",
        [*OPEN, listing(), page(known(additionalDirectories=["/lib"]))],
        [*session(ABLE_MORE), listing(), page(known(additionalDirectories=["/lib"]))],
    ),
    Case(
        "ACP-LIST-009",
        [*OPEN, listing(cwd="/nothing"), refuse(9, -32002)],
        [*OPEN, listing(cwd="/nothing"), page()],
    ),
    Case("ACP-LIST-101", [*session(), listing()], [*OPEN, listing()]),
    Case(
        "ACP-LIST-102",
        [*OPEN, listing(cursor="made up")],
        [*OPEN, listing(), page(nextCursor="c"), listing(10, cursor="c")],
    ),
    Case("ACP-LIST-103", [*OPEN, listing(cwd="project")], [*OPEN, listing(cwd="/work/p")]),
]
