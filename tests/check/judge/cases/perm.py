from tests.check.judge.cases.case import Case
from tests.check.judge.talking import (
    OPTIONS,
    ask_permission,
    call,
    cancel,
    dismiss,
    end,
    notify,
    permit,
    progress,
    prompt,
    respond,
    session,
)

OPEN = [*session(), prompt(), call()]
ASKED = [*OPEN, ask_permission()]
LOOSE = {"sessionId": "s1", "toolCall": {"toolCallId": "c1"}, "options": OPTIONS}

CASES = [
    Case("ACP-PERM-001", [*OPEN, ask_permission(call_id="c9")], ASKED),
    Case("ACP-PERM-002", [*OPEN, ask_permission(options=[*OPTIONS, OPTIONS[0]])], ASKED),
    Case("ACP-PERM-003", [*OPEN, notify("session/request_permission", LOOSE, "agent")], ASKED),
    Case("ACP-PERM-004", [*ASKED, progress(status="in_progress")], [*ASKED, permit(), progress(status="in_progress")]),
    Case(
        "ACP-PERM-004",
        [*OPEN, progress(status="in_progress"), progress(status="completed"), ask_permission()],
        [*OPEN, progress(status="in_progress"), ask_permission(), permit()],
    ),
    Case("ACP-PERM-005", [*OPEN, ask_permission(options=[])], ASKED),
    Case("ACP-PERM-006", [*OPEN, ask_permission(options=[{"optionId": "yes", "kind": "allow_once"}])], ASKED),
    Case(
        "ACP-PERM-101", [*ASKED, respond(90, {"outcome": "selected", "optionId": "yes"}, "client")], [*ASKED, permit()]
    ),
    Case("ACP-PERM-102", [*ASKED, permit(option="maybe")], [*ASKED, permit()]),
    Case("ACP-PERM-103", [*ASKED, dismiss(), end()], [*ASKED, dismiss(), cancel(), end(2, "cancelled")]),
]
