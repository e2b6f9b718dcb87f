"""The log of a session as the agent uses it: copied to the client, forked, and of an earlier version."""

import json
from pathlib import Path

from dragoman.protocol import v1
from dragoman.store import Header
from dragoman.store.naming import log_path
from tests.assistant.coming_back import SCRIPT, Remembers, converse, files, fork, lines_until_answer, load, raw_client
from tests.assistant.running import running_agent
from tests.store.version1_files import encode_header

VERSION_1 = Path(__file__).parent.parent / "store" / "data" / "version1"
PLAIN = "00000000-0000-4000-8000-000000000001"


async def test_a_load_sends_the_messages_of_the_log_byte_for_byte(place):
    cwd, home = place
    session_id, _ = await converse(place, "first", "fly")
    [path] = files(home)
    logged = [line + b"\n" for line in path.read_bytes().split(b"\n") if line.startswith(b'{"jsonrpc":')]
    async with raw_client(home, SCRIPT) as end:
        params = {"cwd": str(cwd), "mcpServers": [], "sessionId": session_id}
        lines, _ = await lines_until_answer(end, {"id": 1, "method": "session/load", "params": params})
    assert len(logged) > 5
    assert [line.rstrip(b"\n") for line in lines][: len(logged)] == [line.rstrip(b"\n") for line in logged]


async def test_a_fork_replays_the_conversation_under_its_own_id(place):
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


async def test_a_session_of_version_1_is_loaded_remembered_and_goes_on(place):
    cwd, home = place
    path = log_path(home, str(cwd), PLAIN)
    path.parent.mkdir(parents=True)
    _, records = (VERSION_1 / "plain.jsonl").read_bytes().split(b"\n", 1)
    path.write_bytes(encode_header(Header(PLAIN, str(cwd), [], "2026-11-15T12:00:00Z")) + records)
    async with running_agent(home, model=Remembers()) as client:
        await client.initialize()
        await load(client, PLAIN, cwd)
        texts = [update.content.text for update in client.conversation() if hasattr(update, "content")]
        assert texts == ["Hi", "čtyři \u2028 lines", "two", "three"]
        await client.prompt(PLAIN, "and now?")
        assert client.conversation()[-1].content.text == "2 messages"
    assert path.read_bytes().startswith(b'{"dragoman":2,')
