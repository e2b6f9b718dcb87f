from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, end, event, prompt, refuse, respond, session

OPEN = [*session(client={"terminal": True}), prompt()]


def create(id_: int = 70, **params: object) -> object:
    return ask(id_, "terminal/create", {"sessionId": "s1", "command": "ls"} | params, "agent")


def created(id_: int = 70, terminal: str = "t1") -> object:
    return respond(id_, {"terminalId": terminal}, "client")


def use(method: str, id_: int, terminal: str = "t1") -> object:
    return ask(id_, f"terminal/{method}", {"sessionId": "s1", "terminalId": terminal}, "agent")


def output(text: str, id_: int = 71, **fields: object) -> object:
    return respond(id_, {"output": text, "truncated": False} | fields, "client")


RUNNING = [*OPEN, create(), created()]
EXITED = [*RUNNING, use("wait_for_exit", 71), respond(71, {"exitCode": 0}, "client")]
RELEASED = [*EXITED, use("release", 72), respond(72, {}, "client")]
SMALL = [*OPEN, create(outputByteLimit=4), created()]
CUT = [*OPEN, create(command="echo", args=["abcdef"], outputByteLimit=4), created(), use("wait_for_exit", 72)]
CUT += [respond(72, {"exitCode": 0}, "client"), use("output", 71)]
DONE = {"exitStatus": {"exitCode": 0}}
ASK_OUTPUT = [use("output", 71), output("", **DONE)]
SLEEPING = [*OPEN, create(command="sleep", args=["60"]), created(), use("wait_for_exit", 72)]
KILLED = [*RUNNING, use("kill", 75), respond(75, {}, "client"), use("output", 71)]

CASES = [
    Case("ACP-TERM-001", [*session(), prompt(), create()], [*OPEN, create()]),
    Case("ACP-TERM-002", [*OPEN, create(cwd="src")], [*OPEN, create(cwd="/work/p/src")]),
    Case("ACP-TERM-003", [*EXITED, end()], [*RELEASED, end()]),
    Case("ACP-TERM-004", [*RELEASED, use("output", 73)], [*EXITED, use("output", 73)]),
    Case("ACP-TERM-005", [*RUNNING, use("output", 73, "t9")], [*RUNNING, use("output", 73)]),
    Case("ACP-TERM-006", [*OPEN, create(env={"A": "b"})], [*OPEN, create(env=[{"name": "A", "value": "b"}])]),
    Case("ACP-TERM-101", [*RUNNING, create(71), created(71)], [*RUNNING, create(71), created(71, "t2")]),
    Case("ACP-TERM-102", [*SMALL, use("output", 71), output("abcdef")], [*SMALL, use("output", 71), output("abcd")]),
    Case("ACP-TERM-102", [*CUT, output("cdef", **DONE)], [*CUT, output("cdef", truncated=True, **DONE)]),
    Case(
        "ACP-TERM-106",
        [*SLEEPING, respond(72, {"exitCode": 0}, "client"), use("output", 71), output("", **DONE)],
        [*SLEEPING, use("kill", 73), respond(72, {"exitCode": 0}, "client"), respond(73, {}, "client"), *ASK_OUTPUT],
    ),
    Case(
        "ACP-WIRE-111",
        [*SLEEPING, use("kill", 73), respond(73, {}, "client"), event("client", "waited 10", 10.0)],
        [
            *SLEEPING,
            event("client", "waited 10", 10.0),
            use("kill", 73),
            respond(73, {}, "client"),
            respond(72, None, "client"),
        ],
    ),
    Case(
        "ACP-TERM-103",
        [*RUNNING, use("output", 71), output("\ufffdtail", truncated=True)],
        [*RUNNING, use("output", 71), output("tail", truncated=True)],
    ),
    Case("ACP-TERM-104", [*KILLED, refuse(71, -32002, "client")], [*KILLED, output("")]),
    Case(
        "ACP-TERM-105",
        [*RELEASED, use("output", 71), output("", exitStatus={"exitCode": 0})],
        [*RELEASED, use("output", 71), refuse(71, -32002, "client")],
    ),
    Case(
        "ACP-TERM-106",
        [*EXITED, use("output", 71), output("")],
        [*EXITED, use("output", 71), output("", exitStatus={"exitCode": 0})],
    ),
    Case(
        "ACP-TERM-107",
        [*RUNNING, use("output", 71), respond(71, {"output": 5, "truncated": False}, "client")],
        RUNNING,
    ),
]
