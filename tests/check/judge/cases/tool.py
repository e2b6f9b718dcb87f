from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, ask_permission, call, end, permit, progress, prompt, respond, session, update

OPEN = [*session(), prompt()]
DONE = [*OPEN, call(), progress(status="in_progress"), progress(status="completed")]
TERMINAL = {"terminal": True}
SHOWN = [{"type": "terminal", "terminalId": "t1"}]
WITH_TERMINAL = [
    *session(client=TERMINAL),
    prompt(),
    ask(70, "terminal/create", {"sessionId": "s1", "command": "ls"}, "agent"),
    respond(70, {"terminalId": "t1"}, "client"),
]

CASES = [
    Case("ACP-TOOL-001", [*DONE, call()], [*DONE, call("c2")]),
    Case("ACP-TOOL-002", [*OPEN, progress(status="in_progress")], DONE),
    Case("ACP-TOOL-003", [*OPEN, call(), end()], [*DONE, end()]),
    Case("ACP-TOOL-004", [*DONE, progress(status="in_progress")], [*DONE, progress(status="completed")]),
    Case("ACP-TOOL-004", [*DONE, progress(status="failed")], [*DONE, progress(status="completed")]),
    Case(
        "ACP-TOOL-005",
        [*OPEN, call(locations=[{"path": "src/a.py"}])],
        [
            *OPEN,
            call(locations=[{"path": "/work/p/src/a.py"}], content=[{"type": "diff", "path": "C:\\a", "newText": ""}]),
        ],
    ),
    Case(
        "ACP-TOOL-006",
        [*OPEN, call(), ask_permission(), permit(option="no"), progress(status="completed")],
        [
            *OPEN,
            call(),
            ask_permission(),
            permit(option="no"),
            progress(status="failed"),
            call("c2"),
            progress("c2", "completed"),
        ],
    ),
    Case(
        "ACP-TOOL-007",
        [*session(client=TERMINAL), prompt(), call(content=SHOWN)],
        [*WITH_TERMINAL, call(content=SHOWN)],
    ),
    Case(
        "ACP-TOOL-008",
        [*OPEN, call(), ask_permission(), permit(), progress(status="completed")],
        [*OPEN, call(), ask_permission(), permit(), progress(status="in_progress"), progress(status="completed")],
    ),
    Case(
        "ACP-TOOL-009",
        [*OPEN, call(locations=[{"path": "/a", "line": 0}])],
        [*OPEN, call(locations=[{"path": "/a", "line": 1}])],
    ),
    Case("ACP-TOOL-010", [*OPEN, call(), progress(status="success"), end()], [*DONE, end()]),
    Case(
        "ACP-WIRE-022", [*OPEN, call(), update("tool_call_update", tool_call_id="c1", status="completed"), end()], DONE
    ),
    Case("ACP-TOOL-010", [*OPEN, call(kind="magic")], [*OPEN, call(kind="edit")]),
    Case(
        "ACP-TOOL-006",
        [*OPEN, call(), progress(status="completed", rawOutput={"isError": True})],
        [*OPEN, call(), progress(status="completed", rawOutput={"isError": False})],
    ),
]
