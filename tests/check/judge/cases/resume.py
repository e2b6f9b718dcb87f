from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, chunk, refuse, respond, session, turn

ABLE = {"sessionCapabilities": {"resume": {}}}


def resume(session_id: str = "s1", id_: int = 9) -> object:
    return ask(id_, "session/resume", {"sessionId": session_id, "cwd": "/work/p", "mcpServers": []})


ONCE = [*session(ABLE), *turn(chunk("four"))]

CASES = [
    Case(
        "ACP-RESUME-001",
        [*ONCE, resume(), chunk("hello", "user_message_chunk"), respond(9)],
        [*ONCE, resume(), respond(9)],
    ),
    Case(
        "ACP-RESUME-002",
        [*session(ABLE), resume("dragoman-invented-1"), respond(9)],
        [*session(ABLE), resume("dragoman-invented-1"), refuse(9, -32002)],
    ),
    Case("ACP-RESUME-003", [*ONCE, resume(), refuse(9, -32603)], [*ONCE, resume(), respond(9)], "warn"),
    Case("ACP-RESUME-101", [*session(), resume()], [*session(ABLE), resume()]),
]
