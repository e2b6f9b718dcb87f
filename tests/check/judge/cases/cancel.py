from tests.check.judge.cases.case import Case
from tests.check.judge.talking import (
    ask_permission,
    call,
    cancel,
    chunk,
    dismiss,
    end,
    event,
    permit,
    prompt,
    refuse,
    session,
)

RUNNING = [*session(), prompt(), chunk()]
ASKING = [*session(), prompt(), call(), ask_permission()]

CASES = [
    Case(
        "ACP-CANCEL-001",
        [*ASKING, cancel(), dismiss(), end(2, "end_turn")],
        [*ASKING, cancel(), dismiss(), end(2, "cancelled")],
    ),
    Case(
        "ACP-CANCEL-002",
        [*RUNNING, cancel(), refuse(2, -32603, after_s=3.0)],
        [*RUNNING, cancel(), end(2, "cancelled", after_s=3.0)],
    ),
    Case(
        "ACP-CANCEL-003",
        [*RUNNING, cancel(), end(2, "cancelled"), chunk()],
        [*RUNNING, cancel(), chunk(), end(2, "cancelled")],
    ),
    Case(
        "ACP-CANCEL-004",
        [*RUNNING, cancel(), event("agent", "waited 5", 5.0)],
        [*RUNNING, cancel(), end(2, "cancelled")],
    ),
    Case(
        "ACP-PROMPT-001",
        [*ASKING, cancel(), dismiss(), end(2, "endTurn")],
        [*ASKING, cancel(), dismiss(), end(2, "cancelled")],
    ),
    Case("ACP-CANCEL-101", [*ASKING, cancel(), permit()], [*ASKING, cancel(), dismiss()]),
    Case(
        "ACP-CANCEL-101",
        [*ASKING, cancel(), end(2, "cancelled"), prompt(3)],
        [*ASKING, cancel(), end(2, "cancelled"), dismiss(), prompt(3)],
    ),
]
