"""The session log as the agent uses it: replayed to the client, and forked."""

import json

from dragoman.protocol import v1
from dragoman.store.naming import log_path
from tests.assistant.coming_back import SCRIPT, converse, files, fork, lines_until_answer, load, raw_client
from tests.assistant.running import running_agent


async def test_load_sends_the_log_byte_for_byte(place):
    cwd, home = place
    session_id, _ = await converse(place, "first", "fly")
    [path] = files(home)
    logged = [line + b"\n" for line in path.read_bytes().split(b"\n") if line.startswith(b'{"jsonrpc":')]
    async with raw_client(home, SCRIPT) as end:
        params = {"cwd": str(cwd), "mcpServers": [], "sessionId": session_id}
        lines, _ = await lines_until_answer(end, {"id": 1, "method": "session/load", "params": params})
    assert len(logged) > 5
    assert [line.rstrip(b"\n") for line in lines][: len(logged)] == [line.rstrip(b"\n") for line in logged]


async def test_fork_replays_the_conversation_under_its_own_id(place):
    cwd, home = place
    session_id, seen = await converse(place, "first")
    async with running_agent(home) as client:
        await client.initialize()
        forked = await fork(client, session_id, cwd)
    text = log_path(home, str(cwd), forked).read_text()
    messages = [json.loads(line) for line in text.split("\n") if line.startswith('{"jsonrpc":')]
    assert {message["params"]["sessionId"] for message in messages} == {forked}
    async with running_agent(home) as client:
        await client.initialize()
        await load(client, forked, cwd)
        replayed = [update for update in client.conversation() if not isinstance(update, v1.UserMessageChunk)]
    assert replayed == seen
