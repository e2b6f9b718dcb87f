import asyncio

import pytest

from dragoman import __version__
from dragoman.assistant.models.script import ScriptModel
from dragoman.errors import ErrorCode
from dragoman.protocol import v1
from dragoman.protocol.methods import AUTHENTICATE, INITIALIZE, SESSION_NEW, SESSION_PROMPT
from tests.assistant.running import running_agent, session_in
from tests.errors import refused
from tests.table import each_row

WAITING = "- - text: started\n  - delay_s: 600\n- - text: second reply\n"


# ── initialize ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("asked", [0, 1])
async def test_lower_versions_are_answered_with_version_1(asked, tmp_path):
    async with running_agent(tmp_path) as client:
        answer = await client.connection.call(INITIALIZE, v1.InitializeRequest(protocol_version=asked))
        assert answer.protocol_version == 1
        assert answer.agent_info == v1.Implementation(name="dragoman", title="Dragoman", version=__version__)


@pytest.mark.parametrize("asked", [2, 3, 65535])
async def test_version_2_and_higher_are_answered_with_version_2(asked, tmp_path):
    async with running_agent(tmp_path) as client:
        info = {"name": "editor", "version": "1"} if asked < 65535 else 7
        answer = await client.connection.call_extension("initialize", {"protocolVersion": asked, "info": info})
        assert answer["protocolVersion"] == 2
        assert answer["info"] == {"name": "dragoman", "title": "Dragoman", "version": __version__}


@pytest.mark.parametrize("asked", [1, 2, 65535])
async def test_version_2_can_be_disabled(asked, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_ACP_V2", "0")
    async with running_agent(tmp_path) as client:
        answer = await client.connection.call_extension("initialize", {"protocolVersion": asked})
        assert answer["protocolVersion"] == 1


async def test_initialize_needs_only_a_version_and_ignores_unknown_fields(tmp_path):
    async with running_agent(tmp_path) as client:
        answer = await client.connection.call_extension("initialize", {"protocolVersion": 1, "later": {"x": 1}})
        assert answer["protocolVersion"] == 1


@each_row("version", ["1", 1.0, 1.5, True, None, -1, 65536, [1]])
async def test_version_that_is_not_a_small_integer_is_refused(version, tmp_path):
    async with running_agent(tmp_path) as client:
        error = await refused(client.connection.call_extension("initialize", {"protocolVersion": version}))
        assert error.code == ErrorCode.INVALID_PARAMS
        assert error.data["path"] == "params.protocolVersion"


@pytest.mark.parametrize("method", ["session/new", "session/prompt", "_anything", "unknown"])
async def test_requests_before_initialize_are_refused(method, tmp_path):
    async with running_agent(tmp_path) as client:
        error = await refused(client.connection.call_extension(method, {}))
        assert error.code == ErrorCode.INVALID_REQUEST
        assert "initialize first" in error.data


@pytest.mark.parametrize("method", ["logout", "providers/list", "nes/start", "_ours/x", "no/such"])
async def test_unadvertised_methods_are_refused(method, tmp_path):
    async with session_in(tmp_path) as (client, session_id):
        error = await refused(client.connection.call_extension(method, {"sessionId": session_id}))
        assert error.code == ErrorCode.METHOD_NOT_FOUND
        assert error.data == {"method": method}


async def test_login_that_was_not_offered_is_refused(tmp_path):
    async with session_in(tmp_path) as (client, _):
        error = await refused(client.connection.call(AUTHENTICATE, v1.AuthenticateRequest(method_id="magic")))
        assert error.data["path"] == "params.methodId"


# ── session/new ─────────────────────────────────────────────────────────────────────────────────────


async def test_session_ids_are_unique_uuids(tmp_path):
    async with session_in(tmp_path) as (client, first):
        assert len({first, *[await client.new_session(str(tmp_path)) for _ in range(20)]}) == 21
        assert len(first) == 36


@each_row(
    ("cwd", "words"),
    [
        ("", "absolute"),
        ("relative/path", "absolute"),
        (".", "absolute"),
        ("~", "home directory itself"),
        ("~/code", "home directory itself"),
        ("/no/such/directory", "does not exist"),
        ("/dev/null", "is not a directory"),
        ("/with\0nul", "NUL"),
    ],
)
async def test_cwd_must_be_an_absolute_existing_directory(cwd, words, tmp_path):
    async with running_agent(tmp_path) as client:
        await client.initialize()
        error = await refused(client.new_session(cwd))
        assert error.code == ErrorCode.INVALID_PARAMS
        assert error.data["path"] == "params.cwd"
        assert words in error.data["problem"]


@each_row(
    ("params", "path"),
    [
        ({"mcpServers": []}, "params.cwd"),
        ({"cwd": "/"}, "params.mcpServers"),
        ({"cwd": 5, "mcpServers": []}, "params.cwd"),
        ({"cwd": "/", "mcpServers": None}, "params.mcpServers"),
        ({"cwd": "/", "mcpServers": {}}, "params.mcpServers"),
        ({"cwd": "/", "mcpServers": ["x"]}, "params.mcpServers[0]"),
        ({"cwd": "/", "mcpServers": [{"name": "a", "command": "b", "args": []}]}, "params.mcpServers[0].env"),
        ({"cwd": "/", "mcpServers": [{"name": "a", "command": "b", "env": []}]}, "params.mcpServers[0].args"),
        (
            {"cwd": "/", "mcpServers": [{"type": "http", "name": "a", "headers": []}]},
            "params.mcpServers[0].url",
        ),
    ],
)
async def test_missing_or_invalid_field_is_named(params, path, tmp_path):
    async with running_agent(tmp_path) as client:
        await client.initialize()
        error = await refused(client.connection.call_extension("session/new", params))
        assert error.code == ErrorCode.INVALID_PARAMS
        assert error.data["path"] == path
        assert error.data["problem"]


async def test_stdio_servers_are_accepted(tmp_path):
    async with running_agent(tmp_path) as client:
        await client.initialize()
        server = v1.McpServerStdio(name="a", command="b", args=[], env=[])
        request = v1.NewSessionRequest(cwd=str(tmp_path), mcp_servers=[server])
        assert (await client.connection.call(SESSION_NEW, request)).session_id


# ── session/prompt ──────────────────────────────────────────────────────────────────────────────────


async def test_turn_streams_its_chunks_and_ends(tmp_path):
    async with session_in(tmp_path, "- - thought: hmm\n  - text: 'hel'\n  - text: lo\n") as (client, session_id):
        answer = await client.prompt(session_id, "hi")
        assert answer.stop_reason == "end_turn"
        kinds = [type(update) for update in client.conversation()]
        assert kinds == [v1.SessionInfoUpdate, v1.AgentThoughtChunk, v1.AgentMessageChunk, v1.AgentMessageChunk]
        assert client.text() == "hello"
        assert {notification.session_id for notification in client.updates} == {session_id}


async def test_chunks_share_an_id_only_within_their_message(tmp_path):
    script = "- - thought: t\n  - text: a\n    repeat: 3\n"
    async with session_in(tmp_path, script) as (client, session_id):
        await client.prompt(session_id, "one")
        await client.prompt(session_id, "two")
        ids = [update.message_id for update in client.conversation() if not isinstance(update, v1.SessionInfoUpdate)]
        assert all(ids)
        assert ids[1] == ids[2] == ids[3]
        assert len({ids[0], ids[1], ids[4], ids[5]}) == 4


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("- - text: a\n", "end_turn"),
        ("- - text: a\n  - stop: max_tokens\n", "max_tokens"),
        ("- - stop: refusal\n", "refusal"),
        ("- - tool: {name: again}\n", "max_turn_requests"),
    ],
)
async def test_stop_reasons_are_correct(script, reason, tmp_path):
    async with session_in(tmp_path, script) as (client, session_id):
        assert (await client.prompt(session_id, "hi")).stop_reason == reason


async def test_usage_is_reported_during_and_after_the_turn(tmp_path):
    async with session_in(tmp_path, "- - usage: {input: 100, output: 20}\n") as (client, session_id):
        answer = await client.prompt(session_id, "hi")
        assert answer.usage == v1.Usage(total_tokens=120, input_tokens=100, output_tokens=20)
        assert client.updates[-1].update == v1.UsageUpdate(used=120, size=200_000)


async def test_turn_usage_sums_all_requests(tmp_path):
    script = (
        "- - tool: {name: list_directory, arguments: {path: .}}\n  - usage: {input: 100, output: 20}\n"
        "- - usage: {input: 130, output: 5}\n"
    )
    async with session_in(tmp_path, script) as (client, session_id):
        for _ in range(2):
            answer = await client.prompt(session_id, "hi")
            assert answer.usage == v1.Usage(total_tokens=255, input_tokens=230, output_tokens=25)


async def test_missing_tool_fails_visibly_and_the_turn_continues(tmp_path):
    script = "- - tool: {name: fly, arguments: {to: moon}}\n- - text: I cannot fly.\n"
    async with session_in(tmp_path, script) as (client, session_id):
        assert (await client.prompt(session_id, "fly")).stop_reason == "end_turn"
        _, call, progress, _ = client.conversation()
        assert (call.title, call.status) == ("fly", "pending")
        assert (progress.tool_call_id, progress.status) == (call.tool_call_id, "failed")
        assert progress.raw_input == {"to": "moon"}
        assert "no tool here is named fly" in progress.content[0].content.text
        assert client.text() == "I cannot fly."


async def test_model_failure_is_an_error_and_the_session_continues(tmp_path):
    script = "- - text: a\n  - error: the provider is down\n- - text: b\n"
    async with session_in(tmp_path, script) as (client, session_id):
        error = await refused(client.prompt(session_id, "hi"))
        assert (error.code, error.data) == (ErrorCode.INTERNAL_ERROR, "the model failed: the provider is down")
        assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (v1.ImageContent(data="AA==", mime_type="image/png"), "image"),
        (v1.AudioContent(data="AA==", mime_type="audio/wav"), "audio"),
    ],
)
async def test_unsupported_content_is_refused_with_its_position(block, kind, tmp_path):
    class Blind(ScriptModel):
        content_types = frozenset()

    async with session_in(tmp_path, model=Blind("blind", [[]])) as (client, session_id):
        prompt = v1.PromptRequest(session_id=session_id, prompt=[v1.TextContent(text="see"), block])
        error = await refused(client.connection.call(SESSION_PROMPT, prompt))
        assert error.data["path"] == "params.prompt[1].type"
        assert f"blind does not accept {kind} content" in error.data["problem"]


async def test_prompt_for_an_unknown_session_is_not_found(tmp_path):
    async with running_agent(tmp_path) as client:
        await client.initialize()
        error = await refused(client.prompt("nobody", "hi"))
        assert error.code == ErrorCode.RESOURCE_NOT_FOUND
        assert error.data["sessionId"] == "nobody"


async def test_second_prompt_during_a_turn_is_refused(tmp_path):
    async with session_in(tmp_path, WAITING) as (client, session_id):
        first = asyncio.ensure_future(client.prompt(session_id, "one"))
        await client.wait_for(lambda c: c.text() == "started")
        error = await refused(client.prompt(session_id, "two"))
        assert error.code == ErrorCode.INVALID_REQUEST
        assert "busy" in error.data
        assert not first.done()
        await client.cancel(session_id)
        assert (await first).stop_reason == "cancelled"


# ── cancelling ──────────────────────────────────────────────────────────────────────────────────────


async def test_cancel_ends_the_turn_and_the_next_prompt_works(tmp_path):
    async with session_in(tmp_path, WAITING) as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "one"))
        await client.wait_for(lambda c: c.text() == "started")
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"
        assert (await client.prompt(session_id, "two")).stop_reason == "end_turn"
        assert client.text() == "startedsecond reply"


async def test_cancelling_the_prompt_request_cancels_the_turn(tmp_path):
    async with session_in(tmp_path, WAITING) as (client, session_id):
        params = v1.PromptRequest(session_id=session_id, prompt=[v1.TextContent(text="one")])
        turn = asyncio.ensure_future(client.connection.call(SESSION_PROMPT, params))
        await client.wait_for(lambda c: c.text() == "started")
        third = 3  # after initialize and session/new
        await client.connection.notify_extension("$/cancel_request", {"requestId": third})
        assert (await turn).stop_reason == "cancelled"


async def test_cancelling_one_session_does_not_affect_others(tmp_path):
    async with session_in(tmp_path, WAITING) as (client, one):
        other = await client.new_session(str(tmp_path))
        turns = [asyncio.ensure_future(client.prompt(session_id, "hi")) for session_id in (one, other)]
        await client.wait_for(lambda c: c.text(one) == c.text(other) == "started")
        await client.cancel(one)
        assert (await turns[0]).stop_reason == "cancelled"
        assert not turns[1].done()
        await client.cancel(other)
        assert (await turns[1]).stop_reason == "cancelled"


async def test_cancel_without_a_turn_is_ignored(tmp_path):
    async with session_in(tmp_path) as (client, session_id):
        await client.cancel(session_id)
        await client.cancel("nobody")
        assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"


async def test_cancel_directly_after_the_prompt_is_not_lost(tmp_path):
    async with session_in(tmp_path, WAITING) as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "one"))
        await asyncio.sleep(0)
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"
