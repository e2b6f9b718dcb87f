from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, call, notify, prompt, refuse, respond, session

BOTH = {"elicitation": {"form": {}, "url": {}}}
OPEN = [*session(client=BOTH), prompt()]
MEAN = [*session(), prompt()]


def form(id_: int = 70, name: str = "strategy", message: str = "How?", **fields: object) -> object:
    schema = {"type": "object", "properties": {name: {"type": "string", "enum": ["a", "b"]}}, "required": [name]}
    given = {"sessionId": "s1", "mode": "form", "message": message, "requestedSchema": schema}
    return ask(id_, "elicitation/create", given | fields, "agent")


def url(id_: int = 70, elicitation: str = "e1", where: str = "https://example.com/x", **fields: object) -> object:
    given = {"sessionId": "s1", "mode": "url", "message": "Go", "elicitationId": elicitation, "url": where}
    return ask(id_, "elicitation/create", given | fields, "agent")


def answer(action: str = "accept", id_: int = 70, **fields: object) -> object:
    return respond(id_, {"action": action} | fields, "client")


def complete(elicitation: str) -> object:
    return notify("elicitation/complete", {"elicitationId": elicitation}, "agent")


CASES = [
    Case("ACP-ELICIT-001", [*MEAN, form()], [*OPEN, form()]),
    Case("ACP-ELICIT-002", [*OPEN, form(name="api_key")], [*OPEN, form(name="max_tokens")], "warn"),
    Case(
        "ACP-ELICIT-002",
        [*OPEN, form(requestedSchema={"type": "object", "properties": {"apiKey": {"type": "string"}}})],
        [*OPEN, form(requestedSchema={"type": "object", "properties": {"keyboard": {"type": "string"}}})],
    ),
    Case("ACP-ELICIT-003", [*OPEN, url(), url(71)], [*OPEN, url(), url(71, "e2")]),
    Case("ACP-ELICIT-004", [*OPEN, url(), complete("e9")], [*OPEN, url(), complete("e1")]),
    Case("ACP-ELICIT-005", [*OPEN, url(where="http://example.com")], [*OPEN, url(where="http://localhost:80/x")]),
    Case("ACP-ELICIT-006", [*OPEN, url(where="https://me:pw@example.com")], [*OPEN, url()]),
    Case("ACP-ELICIT-007", [*OPEN, form(message="See https://example.com")], [*OPEN, form()]),
    Case("ACP-ELICIT-008", [*OPEN, url(url=None)], [*OPEN, url()]),
    Case("ACP-ELICIT-009", [*OPEN, form(toolCallId="c9")], [*OPEN, call(), form(toolCallId="c1")]),
    Case("ACP-ELICIT-101", [*OPEN, form(), respond(70, {"content": {}}, "client")], [*OPEN, form(), answer("decline")]),
    Case("ACP-ELICIT-101", [*OPEN, form(), answer("maybe")], [*OPEN, form(), answer("_maybe")]),
    Case("ACP-ELICIT-008", [*OPEN, form(mode="sms")], [*OPEN, form(mode="_sms")]),
    Case(
        "ACP-ELICIT-102",
        [*OPEN, form(), answer(content={"strategy": "c"})],
        [*OPEN, form(), answer(content={"strategy": "a"})],
    ),
    Case("ACP-ELICIT-103", [*MEAN, form(), answer("cancel")], [*MEAN, form(), refuse(70, -32602, "client")]),
]
