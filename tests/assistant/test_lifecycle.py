"""Sessions are created, closed, loaded and forked."""

import asyncio
import json
import os

import pytest

from dragoman.errors import ErrorCode
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_PROMPT
from tests.assistant.coming_back import (
    SCRIPT,
    Remembers,
    close,
    converse,
    delete,
    files,
    fork,
    lines_until_answer,
    listed,
    load,
    raw_client,
    resume,
    without_user,
)
from tests.assistant.running import running_agent
from tests.errors import refused


async def test_supported_methods_are_advertised(place):
    async with running_agent(place[1]) as client:
        capabilities = (await client.initialize()).agent_capabilities
    assert capabilities.load_session
    given = capabilities.session_capabilities
    for name in ("list", "resume", "close", "delete", "fork", "additional_directories"):
        assert getattr(given, name) is not None
    assert capabilities.mcp_capabilities == v1.McpCapabilities(http=True, sse=True, acp=True)
    assert capabilities.prompt_capabilities == v1.PromptCapabilities(embedded_context=True)


# ── the file ────────────────────────────────────────────────────────────────────────────────────────


async def test_log_file_is_in_place_and_names_its_cwd(place):
    cwd, home = place
    session_id, _ = await converse(place, "hi")
    [path] = files(home)
    assert path == home / "projects" / str(cwd).replace("/", "-") / f"session-{session_id}.jsonl"
    header, *lines = map(json.loads, path.read_text().split("\n")[:-1])
    assert header["session"]["cwd"] == str(cwd)
    _, *seals = [line["seal"] for line in lines if "seal" in line]
    assert [seal["first"] for seal in seals] == [1, *(seal["last"] + 1 for seal in seals[:-1])]
    assert seals[-1]["last"] == len(lines) - len(seals) - 1
    assert path.stat().st_mode & 0o777 == 0o600


async def test_mcp_servers_and_their_secrets_are_in_no_file(place):
    cwd, home = place
    server = v1.McpServerStdio(
        name="s", command="c", args=["canary-arg"], env=[v1.EnvVariable(name="KEY", value="canary-env")]
    )
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd), [server])
        await client.prompt(session_id, "hi")
    assert all(b"canary" not in path.read_bytes() for path in home.rglob("*") if path.is_file())


# ── session/load ────────────────────────────────────────────────────────────────────────────────────


async def test_load_replays_the_conversation_and_then_answers(place):
    session_id, seen = await converse(place, "first prompt", "fly")
    async with running_agent(place[1], SCRIPT) as client:
        await client.initialize()
        answer = await load(client, session_id, place[0])
        replayed = client.conversation()
    assert without_user(replayed) == seen
    assert [u.content.text for u in replayed if isinstance(u, v1.UserMessageChunk)] == ["first prompt", "fly"]
    assert isinstance(replayed[0], v1.UserMessageChunk)
    assert answer.modes.current_mode_id == "ask"
    assert answer.config_options


async def test_replayed_updates_are_the_bytes_that_were_sent(place):
    cwd, home = place
    where = {"cwd": str(cwd), "mcpServers": []}
    sent = []
    async with raw_client(home, SCRIPT) as end:
        _, new = await lines_until_answer(end, {"id": 1, "method": "session/new", "params": where})
        for number, text in enumerate(['a ☃ and a \\ " newline\n', "again"]):
            params = {"sessionId": new["sessionId"], "prompt": [{"type": "text", "text": text}]}
            lines, _ = await lines_until_answer(end, {"id": 2 + number, "method": "session/prompt", "params": params})
            sent += lines
    async with raw_client(home, SCRIPT) as end:
        load = {"id": 1, "method": "session/load", "params": {**where, "sessionId": new["sessionId"]}}
        replayed, _ = await lines_until_answer(end, load)
    assert len(sent) > 5
    assert [line for line in replayed if b"user_message_chunk" not in line] == sent


async def test_model_remembers_after_a_load_and_a_resume(place):
    cwd, home = place
    session_id, _ = await converse(place, "one", "two", model=Remembers())
    for bring_back in (load, resume):
        async with running_agent(home, model=Remembers()) as client:
            await client.initialize()
            await bring_back(client, session_id, cwd)
            client.updates.clear()
            await client.prompt(session_id, "next")
            said = client.text()
        assert said == ("5 messages" if bring_back is load else "7 messages")


async def test_live_session_is_replayed(place):
    cwd, home = place
    async with running_agent(home, SCRIPT) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await client.prompt(session_id, "hi")
        seen = client.conversation()
        client.updates.clear()
        await load(client, session_id, cwd)
        assert without_user(client.conversation()) == seen
        await client.prompt(session_id, "go on")


async def test_live_session_without_a_prompt_replays_nothing(place):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await load(client, session_id, cwd)
        assert client.conversation() == []


async def test_load_during_a_turn_shows_past_and_later_updates(place):
    cwd, home = place
    script = "- - text: 'a'\n    repeat: 50\n  - delay_s: 0.02\n  - text: 'b'\n    repeat: 50\n"
    async with running_agent(home, script) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        turn = asyncio.ensure_future(client.prompt(session_id, "hi"))
        await client.wait_for(lambda c: len(c.updates) > 20)
        client.updates.clear()
        await load(client, session_id, cwd)
        await turn
        text = client.text()
    assert text.endswith("b" * 50)
    assert "a" * 50 + "b" * 50 in text


async def test_updates_during_a_replay_come_after_it(place):
    cwd, home = place
    script = "- - text: 'x'\n    repeat: 3000\n- - text: '0'\n    repeat: 3000\n  - text: '1'\n    repeat: 3000\n"
    async with running_agent(home, script) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await client.prompt(session_id, "fill")
        turn = asyncio.ensure_future(client.prompt(session_id, "run"))
        await client.wait_for(lambda c: "0" in c.text())
        before = len(client.text())
        await load(client, session_id, cwd)
        await turn
        replayed_and_live = client.text()[before:]
    start = replayed_and_live.index("x" * 3000)
    assert replayed_and_live[start + 3000 :] == "0" * 3000 + "1" * 3000


@pytest.mark.parametrize("bring_back", [load, resume])
async def test_unknown_session_is_not_found(place, bring_back):
    async with running_agent(place[1]) as client:
        await client.initialize()
        for unknown in ("nobody", "00000000-0000-0000-0000-000000000000", "../../etc/passwd", ""):
            error = await refused(bring_back(client, unknown, place[0]))
            assert (error.code, error.data["sessionId"]) == (ErrorCode.RESOURCE_NOT_FOUND, unknown)


@pytest.mark.parametrize("bring_back", [load, resume])
@pytest.mark.parametrize("live", [True, False])
async def test_wrong_cwd_is_refused_with_the_right_one(place, bring_back, live, tmp_path):
    cwd, home = place
    session_id, _ = await converse(place, "hi")
    async with running_agent(home) as client:
        await client.initialize()
        if live:
            await resume(client, session_id, cwd)
        error = await refused(bring_back(client, session_id, tmp_path))
        assert error.data["path"] == "params.cwd"
        assert f"belongs to {cwd}" in error.data["problem"]
        await bring_back(client, session_id, f"{cwd}/./")


async def test_resume_replays_nothing(place):
    session_id, _ = await converse(place, "hi")
    async with running_agent(place[1], SCRIPT) as client:
        await client.initialize()
        answer = await resume(client, session_id, place[0])
        assert client.conversation() == []
        assert answer.modes.current_mode_id == "ask"
        assert (await client.prompt(session_id, "again")).stop_reason == "end_turn"


@pytest.mark.parametrize("bring_back", [load, resume])
async def test_session_of_another_process_is_refused_with_its_owner(place, bring_back):
    cwd, home = place
    async with running_agent(home) as owner:
        await owner.initialize()
        session_id = await owner.new_session(str(cwd))
        await owner.prompt(session_id, "hi")
        async with running_agent(home) as other:
            await other.initialize()
            error = await refused(bring_back(other, session_id, cwd))
    assert error.code == ErrorCode.INVALID_REQUEST
    assert error.data["pid"] == os.getpid()
    assert f"process {os.getpid()}" in error.data["problem"]


async def test_two_parallel_loads_both_get_the_session(place):
    session_id, seen = await converse(place, "hi")
    async with running_agent(place[1]) as client:
        await client.initialize()
        await asyncio.gather(load(client, session_id, place[0]), load(client, session_id, place[0]))
        assert len(without_user(client.conversation())) == 2 * len(seen)


async def test_additional_directories_come_from_the_request_and_are_checked(place, tmp_path):
    cwd, home = place
    session_id, _ = await converse(place, "hi")
    async with running_agent(home) as client:
        await client.initialize()
        await load(client, session_id, cwd, additional_directories=[str(tmp_path)])
        error = await refused(load(client, session_id, cwd, additional_directories=[str(tmp_path), "relative"]))
        assert error.data["path"] == "params.additionalDirectories[1]"


# ── list, close, delete, fork ───────────────────────────────────────────────────────────────────────


async def test_list_has_title_time_and_message_count_newest_first(place, tmp_path):
    cwd, home = place
    first, _ = await converse(place, "What is the\n meaning of life?", "Really?")
    second, _ = await converse((tmp_path, home), "elsewhere")
    async with running_agent(home) as client:
        await client.initialize()
        everything = await listed(client)
        assert [info.session_id for info in everything.sessions] == [second, first]
        [info] = (await listed(client, cwd)).sessions
        assert (info.session_id, info.cwd, info.title) == (first, str(cwd), "What is the meaning of life?")
        assert info.updated_at.endswith("Z")
        assert info.meta == {"dragoman/messages": 4}  # two of each side; a reply with only a tool call does not count
        assert (await listed(client, "/nowhere")).sessions == []
        assert everything.next_cursor is None


@pytest.mark.parametrize("cwd", ["", "relative", "~/code"])
async def test_list_of_a_relative_directory_is_refused(place, cwd):
    async with running_agent(place[1]) as client:
        await client.initialize()
        error = await refused(client.connection.call_extension("session/list", {"cwd": cwd}))
        assert (error.code, error.data["path"]) == (ErrorCode.INVALID_PARAMS, "params.cwd")


async def test_invalid_cursor_is_refused(place):
    async with running_agent(place[1]) as client:
        await client.initialize()
        error = await refused(listed(client, cursor="made up"))
        assert (error.code, error.data["path"]) == (ErrorCode.INVALID_PARAMS, "params.cursor")


async def test_close_is_answered_after_the_turn(place):
    cwd, home = place
    async with raw_client(home, "- - text: started\n  - delay_s: 600\n") as end:
        new = await end.ask({"id": 1, "method": "session/new", "params": {"cwd": str(cwd), "mcpServers": []}})
        session = {"sessionId": new["result"]["sessionId"]}
        end.send({"id": 2, "method": "session/prompt", "params": {**session, "prompt": []}})
        while (await end.receive())["params"]["update"]["sessionUpdate"] != "agent_message_chunk":
            pass
        answers = [await end.ask({"id": 3, "method": "session/close", "params": session}), await end.receive()]
    assert [(answer["id"], answer["result"]) for answer in answers] == [(2, {"stopReason": "cancelled"}), (3, {})]


async def test_closed_session_keeps_its_history(place):
    cwd, home = place
    async with running_agent(home, "- - text: said\n") as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await client.prompt(session_id, "hi")
        for _ in range(2):
            await close(client, session_id)
        assert (await refused(client.prompt(session_id, "x"))).code == ErrorCode.RESOURCE_NOT_FOUND
        await load(client, session_id, cwd)
        assert client.text() == "saidsaid"


async def test_close_of_an_unknown_session_is_not_found(place):
    async with running_agent(place[1]) as client:
        await client.initialize()
        assert (await refused(close(client, "nobody"))).code == ErrorCode.RESOURCE_NOT_FOUND


async def test_delete_removes_the_session_and_ignores_missing_ones(place):
    cwd, home = place
    session_id, _ = await converse(place, "hi")
    async with running_agent(home) as client:
        await client.initialize()
        await load(client, session_id, cwd)
        for _ in range(2):
            await delete(client, session_id)
        await delete(client, "nobody")
        assert (await listed(client)).sessions == []
        assert (await refused(load(client, session_id, cwd))).code == ErrorCode.RESOURCE_NOT_FOUND
    assert files(home) == []


async def test_delete_stops_a_running_turn(place):
    cwd, home = place
    async with running_agent(home, "- - text: started\n  - delay_s: 600\n") as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        turn = asyncio.ensure_future(client.prompt(session_id, "hi"))
        await client.wait_for(lambda c: c.text() == "started")
        await delete(client, session_id)
        assert (await turn).stop_reason == "cancelled"
    assert files(home) == []


async def test_fork_shares_the_history_and_then_diverges(place):
    cwd, home = place
    session_id, seen = await converse(place, "hi", model=Remembers())
    async with running_agent(home, model=Remembers()) as client:
        await client.initialize()
        copy = await fork(client, session_id, cwd)
        assert copy != session_id
        await client.prompt(copy, "only here")
        assert client.text() == "3 messages"
        client.updates.clear()
        await load(client, session_id, cwd)
        assert without_user(client.conversation()) == seen
        client.updates.clear()
        await load(client, copy, cwd)
        assert client.text() == "1 messages3 messages"
        assert len((await listed(client)).sessions) == 2


async def test_fork_before_a_message_drops_the_rest(place):
    cwd, home = place
    async with running_agent(home, model=Remembers()) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        for text in ("one", "again", "again"):
            await client.prompt(session_id, text)
        copies = {}
        for text, occurrence in (("one", 1), ("again", 1), ("again", 2)):
            meta = {"dragoman/fork": {"before": {"text": text, "occurrence": occurrence}}}
            copies[text, occurrence] = await fork(client, session_id, cwd, meta=meta)
        error = await refused(fork(client, session_id, cwd, meta={"dragoman/fork": {"before": {"text": "two"}}}))
        assert (error.code, "no such user message" in str(error.data)) == (-32602, True)
        for nameless in ({}, {"ids": []}, {"occurrence": 2}):
            error = await refused(fork(client, session_id, cwd, meta={"dragoman/fork": {"before": nameless}}))
            assert (error.code, "identify the message" in str(error.data)) == (-32602, True)
        for copy, count in zip(copies.values(), (1, 3, 5), strict=True):
            client.updates.clear()
            await client.prompt(copy, "anew")
            assert client.text() == f"{count} messages"
        client.updates.clear()
        await load(client, copies["again", 2], cwd)
        assert client.text() == "1 messages3 messages5 messages"
        said = [each.update.content.text for each in client.updates if isinstance(each.update, v1.UserMessageChunk)]
        assert said == ["one", "again", "anew"]


async def test_fork_before_a_client_named_or_refused_message_works(place):
    cwd, home = place
    async with running_agent(home, model=Remembers()) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        too_long = "x" * 101
        for name in ("first", "second", too_long):
            words = [v1.TextContent(text="again")]
            prompt = v1.PromptRequest(session_id=session_id, prompt=words, meta={"dragoman/message": name})
            await client.connection.call(SESSION_PROMPT, prompt)
        for ids, turns in ((["first"], 0), (["refused", "second"], 1), (["refused", "also"], 3), ([too_long], 3)):
            client.updates.clear()
            copy = await fork(client, session_id, cwd, meta={"dragoman/fork": {"before": {"ids": ids}}})
            await client.prompt(copy, "anew")
            assert client.text() == f"{2 * turns + 1} messages"


async def test_fork_during_a_turn_does_not_affect_the_session(place):
    cwd, home = place
    async with running_agent(home, "- - text: started\n  - delay_s: 600\n- - text: second\n") as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        turn = asyncio.ensure_future(client.prompt(session_id, "hi"))
        await client.wait_for(lambda c: c.text() == "started")
        copy = await fork(client, session_id, cwd)
        assert not turn.done()
        client.updates.clear()
        await load(client, copy, cwd)
        assert client.text(copy) == "started"
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"


async def test_fork_of_an_unprompted_session_keeps_its_settings(place):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await client.connection.call_extension("session/set_mode", {"sessionId": session_id, "modeId": "plan"})
        copy = await fork(client, session_id, cwd)
        assert (await load(client, copy, cwd)).modes.current_mode_id == "plan"
        assert (await refused(fork(client, "nobody", cwd))).code == ErrorCode.RESOURCE_NOT_FOUND


# ── many at once ────────────────────────────────────────────────────────────────────────────────────


async def test_many_sessions_run_in_parallel_without_mixing(place):
    cwd, home = place
    async with running_agent(home, "- - text: x\n    repeat: 100\n") as client:
        await client.initialize()
        ids = [await client.new_session(str(cwd)) for _ in range(20)]
        await asyncio.gather(*(client.prompt(session_id, session_id) for session_id in ids))
        assert all(client.text(session_id) == "x" * 100 for session_id in ids)
    assert len(files(home)) == 20
    for path in files(home):
        text = path.read_text()
        assert sum(session_id in text for session_id in ids) == 1


async def test_slow_model_or_disk_does_not_block_other_sessions(place):
    cwd, home = place
    async with running_agent(home, "- - text: started\n  - delay_s: 600\n") as slow:
        await slow.initialize()
        one = await slow.new_session(str(cwd))
        turn = asyncio.ensure_future(slow.prompt(one, "hi"))
        await slow.wait_for(lambda c: c.text() == "started")
        other = await slow.new_session(str(cwd))
        turns = [turn, asyncio.ensure_future(slow.prompt(other, "hi"))]
        await slow.wait_for(lambda c: c.text(other) == "started")
        for session_id, running in zip((one, other), turns, strict=True):
            await slow.cancel(session_id)
            assert (await running).stop_reason == "cancelled"


# ── idle sessions ───────────────────────────────────────────────────────────────────────────────────


async def test_idle_sessions_hold_no_descriptors(place):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()

        async def converse_once():
            await client.prompt(await client.new_session(str(cwd)), "hi")

        await converse_once()
        before = len(os.listdir("/dev/fd"))
        for _ in range(5):
            await converse_once()
        assert len(os.listdir("/dev/fd")) == before
