from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, refuse, respond, session, update


def modes(current: str = "ask", *ids: str) -> dict[str, object]:
    return {
        "currentModeId": current,
        "availableModes": [{"id": each, "name": each} for each in (ids or ("ask", "code"))],
    }


OPEN = session(modes=modes())


def switch(mode: str) -> object:
    return ask(5, "session/set_mode", {"sessionId": "s1", "modeId": mode})


CASES = [
    Case("ACP-MODE-001", session(modes=modes("plan")), OPEN),
    Case("ACP-MODE-002", session(modes=modes("ask", "ask", "ask")), OPEN),
    Case("ACP-MODE-003", [*OPEN, switch("plan"), respond(5)], [*OPEN, switch("plan"), refuse(5, -32602)]),
    Case(
        "ACP-MODE-004",
        [*OPEN, update("current_mode_update", modeId="code")],
        [*OPEN, update("current_mode_update", currentModeId="code")],
    ),
    Case(
        "ACP-MODE-005",
        [*OPEN, update("current_mode_update", currentModeId="plan")],
        [*OPEN, update("current_mode_update", currentModeId="code")],
    ),
    Case("ACP-MODE-006", session(modes={"currentModeId": "ask", "availableModes": [{"id": "ask"}]}), OPEN),
    Case(
        "ACP-MODE-006",
        [
            *session(modes={"currentModeId": "ask", "availableModes": ["ask", "code"]}),
            switch("code"),
            respond(5),
            update("current_mode_update", currentModeId="ask"),
        ],
        OPEN,
    ),
    Case("ACP-WIRE-120", [*OPEN, ask(5, "session/set_mode", {"sessionId": "s1", "mode": "code"})], OPEN),
    Case("ACP-MODE-101", [*OPEN, switch("plan")], [*OPEN, switch("code")]),
]
