from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, initialize, new, refuse, respond

LOGIN = {"id": "login", "name": "Log in"}
TERMINAL = {"id": "tty", "name": "In a terminal", "type": "terminal"}
OFFER = initialize(authMethods=[LOGIN])


def login(method: str = "login", id_: int = 5) -> object:
    return ask(id_, "authenticate", {"methodId": method})


CASES = [
    Case(
        "ACP-AUTH-001",
        initialize(authMethods=[TERMINAL]),
        initialize(client={"auth": {"terminal": True}}, authMethods=[TERMINAL]),
    ),
    Case(
        "ACP-AUTH-002",
        [*OFFER, login(), respond(5), new()[0], refuse(1, -32000)],
        [*OFFER, login(), respond(5), *new()],
    ),
    Case("ACP-AUTH-003", initialize(authMethods=[LOGIN, LOGIN]), OFFER),
    Case("ACP-AUTH-004", [*initialize(), new()[0], refuse(1, -32000)], [*OFFER, new()[0], refuse(1, -32000)]),
    Case("ACP-AUTH-005", [*OFFER, login("magic"), respond(5)], [*OFFER, login("magic"), refuse(5, -32602)]),
    Case("ACP-AUTH-101", [*OFFER, login("magic")], [*OFFER, login()]),
    Case("ACP-AUTH-102", [*OFFER, ask(5, "logout")], [*initialize({"auth": {"logout": {}}}), ask(5, "logout")]),
]
