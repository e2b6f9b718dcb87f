from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, event, initialize, new, refuse, respond, session

STDIO = {"name": "files", "command": "/usr/bin/files", "args": [], "env": []}
HTTP = {"type": "http", "name": "web", "url": "https://example.com", "headers": []}
ABLE = {"mcpCapabilities": {"http": True}}


def opening(*servers: object, **fields: object) -> object:
    return new(mcpServers=list(servers), **fields)[0]


CASES = [
    Case(
        "ACP-MCP-001",
        [*initialize(), opening(STDIO), refuse(1, -32602)],
        [*initialize(), *new(mcpServers=[STDIO])],
    ),
    Case(
        "ACP-MCP-002",
        [*session(), event("agent", "mcp missed files")],
        [*session(), event("agent", "mcp connected files")],
    ),
    Case(
        "ACP-MCP-003",
        [*session(), event("agent", "mcp leaked files")],
        [*session(), event("agent", "mcp alone files")],
    ),
    Case(
        "ACP-MCP-004",
        [*initialize(ABLE), opening(HTTP), refuse(1, -32602)],
        [*initialize(ABLE), *new(mcpServers=[HTTP])],
    ),
    Case(
        "ACP-MCP-005",
        [*initialize(), ask(1, "session/new", {"cwd": "/work/p"}), respond(1, {"sessionId": "s1"})],
        [*initialize(), ask(1, "session/new", {"cwd": "/work/p"}), refuse(1, -32602)],
    ),
    Case("ACP-MCP-101", [*initialize(), opening(STDIO | {"env": {"A": "b"}})], [*initialize(), opening(STDIO)]),
    Case("ACP-MCP-102", [*initialize(), opening(HTTP)], [*initialize(ABLE), opening(HTTP)]),
    Case("ACP-MCP-103", [*initialize(), opening(STDIO | {"command": "npx"})], [*initialize(), opening(STDIO)]),
]
