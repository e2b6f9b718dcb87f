from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, end, event, initialize, new, prompt, refuse, session, update

MORE = {"sessionCapabilities": {"additionalDirectories": {}}}
FILES = {"fs": {"readTextFile": True}}


def read(path: str) -> object:
    return ask(70, "fs/read_text_file", {"sessionId": "s1", "path": path}, "agent")


COMMANDS = update("available_commands_update", availableCommands=[])

CASES = [
    Case("ACP-NEW-001", [*session(), *new("s1", 5)], [*session(), *new("s2", 5)]),
    Case("ACP-NEW-002", [*initialize(), new()[0], COMMANDS, new()[1]], [*session(), COMMANDS]),
    Case(
        "ACP-NEW-003",
        [*session(), update("available_commands_update", "s9", availableCommands=[])],
        [*session(), COMMANDS],
    ),
    Case(
        "ACP-NEW-004",
        [*initialize(), *new(cwd="project")],
        [*initialize(), new(cwd="project")[0], refuse(1, -32602)],
    ),
    Case(
        "ACP-NEW-005",
        [event("agent", "started in /opt/agent"), *session(client=FILES), prompt(), read("/opt/agent/a.txt")],
        [event("agent", "started in /opt/agent"), *session(client=FILES), prompt(), read("/work/p/a.txt")],
    ),
    Case(
        "ACP-NEW-006",
        [*session(client=FILES), prompt(), read("/work/p2/a.txt")],
        [*session(client=FILES), prompt(), read("/work/p/a.txt")],
        "warn",
    ),
    Case("ACP-NEW-007", [*session(), prompt(), refuse(2, -32002)], [*session(), prompt(), end()]),
    Case("ACP-NEW-101", [*initialize(), *new(cwd="~/project")], session()),
    Case(
        "ACP-NEW-102",
        [*initialize(), *new(additionalDirectories=["/lib"])],
        [*initialize(MORE), *new(additionalDirectories=["/lib"])],
    ),
    Case(
        "ACP-NEW-103",
        [*initialize(MORE), *new(additionalDirectories=["../lib"])],
        [*initialize(MORE), *new(additionalDirectories=["/lib"])],
    ),
]
