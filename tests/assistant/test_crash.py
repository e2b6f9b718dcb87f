"""Damage after a crash is repaired when the session is loaded."""

from dragoman.protocol import v1
from dragoman.protocol.update_lines import update_lines
from dragoman.store import FileStore
from tests.assistant.coming_back import SCRIPT, converse, files, load, without_user
from tests.assistant.running import running_agent


async def test_tool_calls_left_open_by_a_crash_are_closed_once(place):
    cwd, home = place
    session_id, _ = await converse(place, "hi")
    store = FileStore(home)
    log = await store.open(session_id)
    async for _ in log.blocks():
        pass
    log.record("turn", b'{"event":"start"}')
    log.append(
        update_lines(
            log.header.id, [b'{"sessionUpdate":"tool_call","toolCallId":"open","title":"t","status":"pending"}']
        )
    )
    log.append(update_lines(log.header.id, [b'{"sessionUpdate":"tool_call","toolCallId":"done","title":"t"}']))
    log.append(
        update_lines(log.header.id, [b'{"sessionUpdate":"tool_call_update","toolCallId":"done","status":"completed"}'])
    )
    await log.close()
    await store.close()
    for _ in range(2):
        async with running_agent(home) as client:
            await client.initialize()
            await load(client, session_id, cwd)
            ends = [n.update for n in client.updates if isinstance(n.update, v1.ToolCallProgress)]
        assert [(end.tool_call_id, end.status) for end in ends] == [("done", "completed"), ("open", "failed")]


async def test_torn_log_end_is_reported_once_and_the_session_continues(place):
    cwd, home = place
    session_id, seen = await converse(place, "hi")
    [path] = files(home)
    with path.open("ab") as file:
        file.write(b'{"jsonrpc":"2.0","meth')
    async with running_agent(home, SCRIPT) as client:
        await client.initialize()
        await load(client, session_id, cwd)
        assert without_user(client.conversation()) == seen
        [notice] = client.notices()
        assert "cut short" in notice
        await client.prompt(session_id, "go on")
    async with running_agent(home, SCRIPT) as client:
        await client.initialize()
        await load(client, session_id, cwd)
        assert client.notices() == []
        assert "one" in client.text()


async def test_damage_inside_the_log_is_reported_and_the_file_kept(place):
    cwd, home = place
    session_id, _ = await converse(place, "first", "second")
    [path] = files(home)
    original = path.read_bytes()
    target = original.index(b'"second"')
    damaged = original[:target] + b'"sec0nd"' + original[target + 8 :]
    path.write_bytes(damaged)
    async with running_agent(home, SCRIPT) as client:
        await client.initialize()
        await load(client, session_id, cwd)
        assert "damaged" in client.notices()[0]
        assert "first" in [n.update.content.text for n in client.updates if isinstance(n.update, v1.UserMessageChunk)]
        await client.prompt(session_id, "go on")
    assert any(other.read_bytes() == damaged for other in path.parent.iterdir())
