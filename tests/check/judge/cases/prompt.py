from tests.check.judge.cases.case import Case
from tests.check.judge.talking import cancel, chunk, end, event, prompt, refuse, session, turn, update

OPEN = session()
SEEING = session({"promptCapabilities": {"image": True}})
LINK = [{"type": "resource_link", "name": "a", "uri": "file:///a"}]
IMAGE = [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]


def usage(currency: str) -> object:
    return update("usage_update", used=1, size=2, cost={"amount": 0.1, "currency": currency})


NOTICE = update("notice", severity="info", title="Trying again")
COMPACTION = update("compaction_update", compactionId="k1", status="in_progress")

CASES = [
    Case("ACP-PROMPT-001", [*OPEN, prompt(), end(2, "done")], [*OPEN, *turn()]),
    Case("ACP-PROMPT-002", [*OPEN, prompt(session="s9"), end()], [*OPEN, prompt(session="s9"), refuse(2, -32002)]),
    Case(
        "ACP-PROMPT-003",
        [*OPEN, *turn(), prompt(3, prompt=LINK), refuse(3, -32602)],
        [*OPEN, *turn(), prompt(3, prompt=LINK), end(3)],
    ),
    Case("ACP-PROMPT-004", [*OPEN, *turn(chunk()), chunk()], [*OPEN, *turn(chunk())], "warn"),
    Case(
        "ACP-PROMPT-005",
        [*OPEN, prompt(), prompt(3), end(2, "cancelled"), end(3)],
        [*OPEN, prompt(), prompt(3), end(2), end(3)],
    ),
    Case(
        "ACP-PROMPT-005",
        [*OPEN, prompt(), prompt(3), end(2), event("agent", "waited 5", 5.0)],
        [*OPEN, prompt(), prompt(3), refuse(3, -32602)],
    ),
    Case(
        "ACP-PROMPT-005",
        [*OPEN, prompt(), prompt(3), cancel(), end(2, "cancelled"), event("agent", "waited 5", 5.0)],
        [*OPEN, prompt(), prompt(3), cancel(), end(2, "cancelled"), end(3, "cancelled")],
    ),
    Case("ACP-PROMPT-006", [*OPEN, *turn(reason="cancelled")], [*OPEN, *turn()]),
    Case("ACP-PROMPT-007", [*OPEN, prompt(), usage("dollars")], [*OPEN, prompt(), usage("USD")]),
    Case("ACP-PROMPT-008", [*SEEING, prompt(prompt=IMAGE), refuse(2, -32602)], [*SEEING, prompt(prompt=IMAGE), end()]),
    Case("ACP-PROMPT-009", [*session(), NOTICE], [*session(client={"session": {"notices": {}}}), NOTICE]),
    Case("ACP-PROMPT-009", [*session(), COMPACTION], [*session(client={"session": {"compaction": {}}}), COMPACTION]),
    Case(
        "ACP-PROMPT-101",
        [*OPEN, prompt(prompt=IMAGE)],
        [*SEEING, prompt(prompt=IMAGE)],
    ),
    Case("ACP-PROMPT-102", [*OPEN, prompt(session="s9")], [*OPEN, prompt()]),
    Case("ACP-PROMPT-103", [*OPEN, prompt(), prompt(3)], [*OPEN, *turn(), prompt(3)], "warn"),
]
