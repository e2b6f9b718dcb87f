"""Files, terminals and MCP servers that the client provides to an agent."""

import json

import pytest

from dragoman.client.events import PermissionRequested
from dragoman.client.policies import WriteAction, allow_all, allow_reads, rules
from tests.client.driving import END, agent_of, chunk, read, session_with, text
from tests.commands import raw


def ask(request_id, method, **params):
    return [{"id": request_id, "method": method, "params": {"sessionId": "s", **params}}, {"hear": "answer"}]


def answers(events):
    return [json.loads(line) for line in text(events).replace("}{", "}\n{").splitlines()]


async def test_files_are_read_and_written_as_the_policy_allows(tmp_path):
    (tmp_path / "old").write_text("before")
    turn = [
        *ask(1, "fs/read_text_file", path=f"{tmp_path}/old"),
        *ask(2, "fs/write_text_file", path=f"{tmp_path}/new", content="after"),
        END,
    ]
    async with session_with(raw({}, turn), tmp_path, policy=allow_all(), files="write") as session:
        events = await read(session.prompt("go"))
    assert answers(events)[0]["result"] == {"content": "before"}
    assert (tmp_path / "new").read_text() == "after"
    [asked] = [event for event in events if isinstance(event, PermissionRequested)]
    assert isinstance(asked.question.action, WriteAction)


@pytest.mark.parametrize("options", [{"files": "write", "policy": allow_reads()}, {"files": "write"}])
async def test_a_write_that_the_policy_denies_is_refused(options, tmp_path):
    turn = [*ask(2, "fs/write_text_file", path=f"{tmp_path}/new", content="after"), END]
    async with session_with(raw({}, turn), tmp_path, **options) as session:
        [answer] = answers(await read(session.prompt("go")))
    assert "not allowed" in json.dumps(answer["error"])
    assert not (tmp_path / "new").exists()


async def test_files_provided_for_reading_cannot_be_written(tmp_path):
    turn = [*ask(2, "fs/write_text_file", path=f"{tmp_path}/new", content="after"), END]
    async with session_with(raw({}, turn), tmp_path, policy=allow_all(), files="read") as session:
        [answer] = answers(await read(session.prompt("go")))
    assert answer["error"]["code"] == -32601


async def test_a_command_runs_if_the_policy_allows_it(tmp_path):
    turn = [*ask(1, "terminal/create", command="pwd"), *ask(2, "terminal/create", command="touch", args=["x"]), END]
    policy = rules(["allow:run:pwd"])
    async with session_with(raw({}, turn), tmp_path, policy=policy, terminals=True) as session:
        created, refused = answers(await read(session.prompt("go")))
    assert created["result"]["terminalId"]
    assert "not allowed" in json.dumps(refused["error"])
    assert not (tmp_path / "x").exists()


async def test_servers_are_accepted_in_user_forms(tmp_path):
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"time": {"command": "/bin/echo", "args": ["hi"]}}}))
    async with agent_of(raw({}, [chunk("a"), END])) as agent:
        session = await agent.new_session(tmp_path, mcp_servers=tmp_path / ".mcp.json")
        assert [(server.name, server.args) for server in session.mcp_servers] == [("time", ["hi"])]
