from tests.check.judge.cases.case import Case
from tests.check.judge.cases.mode import modes
from tests.check.judge.talking import ask, refuse, respond, session


def select(current: str = "fast", id_: str = "speed", **fields: object) -> dict[str, object]:
    values = [{"value": each, "name": each} for each in ("fast", "slow")]
    return {"id": id_, "name": id_, "type": "select", "currentValue": current, "options": values} | fields


def mode_option(current: str = "ask") -> dict[str, object]:
    values = [{"value": each, "name": each} for each in ("ask", "code")]
    return select(current, "mode", options=values, category="mode")


BRAVE = {"id": "brave", "name": "Brave", "type": "boolean", "currentValue": True}
BOLD_CLIENT = {"session": {"configOptions": {"boolean": {}}}}
OPEN = session(configOptions=[select()])


def choose(value: object, id_: str = "speed", **fields: object) -> object:
    return ask(5, "session/set_config_option", {"sessionId": "s1", "configId": id_, "value": value} | fields)


def chosen(*options: object) -> object:
    return respond(5, {"configOptions": list(options)})


TWO = session(configOptions=[select(), select(id_="pace")])
PARTLY = [*TWO, choose("slow"), chosen(select("slow"))]
"""It is not known yet whether the second option depends on the value of the first."""

SET = [*OPEN, choose("slow"), chosen(select("slow"))]
BOTH = session(modes=modes(), configOptions=[mode_option()])

CASES = [
    Case("ACP-CONFIG-001", session(configOptions=[BRAVE]), session(client=BOLD_CLIENT, configOptions=[BRAVE])),
    Case("ACP-CONFIG-002", [*OPEN, choose("slow"), chosen()], SET),
    Case(
        "ACP-CONFIG-002",
        [*PARTLY, choose("slow", "pace"), chosen(select("slow", "pace"))],
        [*PARTLY, choose("slow", "pace"), refuse(5, -32602)],
    ),
    Case("ACP-CONFIG-002", [*TWO, choose("fast"), chosen(select("fast"))], PARTLY),
    Case("ACP-CONFIG-003", [*OPEN, choose("slow"), chosen(select("fast"))], SET),
    Case("ACP-CONFIG-004", session(configOptions=[select("warp")]), OPEN),
    Case("ACP-CONFIG-005", session(configOptions=[select(), select()]), OPEN),
    Case("ACP-CONFIG-006", session(modes=modes("code"), configOptions=[mode_option("ask")]), BOTH),
    Case("ACP-CONFIG-007", session(configOptions=[mode_option()]), BOTH),
    Case(
        "ACP-CONFIG-008",
        session(configOptions=[select(category="pace")]),
        session(configOptions=[select(category="_pace")]),
    ),
    Case("ACP-CONFIG-009", [*OPEN, choose("warp"), chosen(select())], [*OPEN, choose("warp"), refuse(5, -32602)]),
    Case(
        "ACP-CONFIG-010",
        session(configOptions=[{"id": "a", "type": "select", "currentValue": "b", "options": []}])[:-1]
        + session(
            configOptions=[{"id": "a", "type": "select", "currentValue": "b", "options": [{"value": "b", "name": "b"}]}]
        )[-1:],
        OPEN,
    ),
    Case("ACP-CONFIG-101", [*OPEN, choose("warp")], [*OPEN, choose("slow")]),
    Case("ACP-CONFIG-102", [*OPEN, choose("slow", "pace")], [*OPEN, choose("slow")]),
]
