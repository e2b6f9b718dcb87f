"""As a new user has it: `dragoman agent` as an editor starts it, an agent file, and a provider that is not far away."""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.errors import ErrorCode, RemoteError
from dragoman.proc import EVERYTHING, Supervisor
from dragoman.protocol import v1
from dragoman.testing import ScriptedClient
from dragoman.wire import StdioTransport
from tests.agent.models.loopback import Anthropic, Chat, Google, Refusal, Stream, loopback
from tests.cli.test_agent_command import DRAGOMAN

KEY = "sk-canary-19ab44f0"
AT_ONCE = {"retry-after-ms": "1"}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "DRAGOMAN_MODEL"):
        monkeypatch.delenv(variable, raising=False)


def write_agent_file(name, url=None, *more):
    lines = ["model:", f"  name: {name}", *([f"  base_url: {url}"] if url else []), *more]
    home = Path(os.environ["DRAGOMAN_HOME"])
    home.mkdir(exist_ok=True)
    (home / "dragoman.yaml").write_text("\n".join(lines) + "\n")


@asynccontextmanager
async def session_with_agent(cwd, *options, decide=lambda _: "allow"):
    async with asyncio.timeout(50), Supervisor() as supervisor:
        child = await supervisor.start([*DRAGOMAN, "agent", *options], inherit=EVERYTHING)
        transport = StdioTransport(*child.take_stdio(), explain_end=child.death)
        async with ScriptedClient(transport, decide=decide) as client:
            await client.initialize()
            yield client, await client.new_session(str(cwd))


@asynccontextmanager
async def session(cwd, *answers, wire=None, more=(f"  api_key: {KEY}",), **options):
    """A session with an agent whose file leads to a provider with these answers."""
    wire = wire or Chat()
    async with loopback(*answers) as provider:
        write_agent_file(wire.model, provider.url + wire.base_path, *more)
        async with session_with_agent(cwd, **options) as (client, session_id):
            yield provider, client, session_id


def of(kind, client):
    return [update for update in client.conversation() if isinstance(update, kind)]


def thoughts_of(client):
    return "".join(update.content.text for update in of(v1.AgentThoughtChunk, client))


async def test_a_prompt_is_answered_as_the_words_come(tmp_path):
    wire = Chat()
    async with session(tmp_path, wire.reply(("thought", "Hm."), ("text", "Hel", "lo ", "you"), usage=(120, 45))) as (
        provider,
        client,
        session_id,
    ):
        answer = await client.prompt(session_id, "hi")
        assert answer.stop_reason == "end_turn"
        assert answer.usage == v1.Usage(total_tokens=165, input_tokens=120, output_tokens=45)
        assert [chunk.content.text for chunk in of(v1.AgentMessageChunk, client)] == ["Hel", "lo ", "you"]
        assert thoughts_of(client) == "Hm."
        [usage] = of(v1.UsageUpdate, client)
        assert (usage.used, usage.size, usage.cost) == (165, 32_768, None)
    [request] = provider.requests
    assert request.path == wire.path
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert {tool["function"]["name"] for tool in request.body["tools"]} >= {"read_file", "write_file", "run_command"}
    assert "You are dragoman" in request.body["messages"][0]["content"]


async def test_the_cost_is_told_where_it_is_known(tmp_path):
    wire = Anthropic()
    async with session(tmp_path, wire.reply(("text", "Hi"), usage=(1_000, 100)), wire=wire) as (_, client, session_id):
        await client.prompt(session_id, "hi")
        [usage] = of(v1.UsageUpdate, client)
        assert (usage.used, usage.size) == (1_100, 1_000_000)
        assert usage.cost.currency == "USD"
        assert usage.cost.amount > 0


@pytest.mark.parametrize("wire", [Chat(), Anthropic(), Google()], ids=lambda wire: type(wire).__name__)
async def test_a_file_is_written_once_the_person_allows_it(wire, tmp_path):
    call = ("call", "c1", "write_file", '{"path": "notes.txt", ', '"content": "buy milk\\n"}')
    answers = [wire.reply(("text", "I write it."), call, finish="tools"), wire.reply(("text", "Done."))]
    async with session(tmp_path, *answers, wire=wire) as (provider, client, session_id):
        assert (await client.prompt(session_id, "write it")).stop_reason == "end_turn"
        assert client.text() == "I write it.Done."
        [permission] = client.permissions
        [diff] = permission.tool_call.content
        assert (diff.path, diff.new_text) == (str(tmp_path / "notes.txt"), "buy milk\n")
        [announced] = of(v1.ToolCall, client)
        assert announced.status == "pending"
        assert of(v1.ToolCallProgress, client)[-1].status == "completed"
    assert (tmp_path / "notes.txt").read_text() == "buy milk\n"
    assert len(provider.requests) == 2


async def test_a_denial_is_told_to_the_model(tmp_path):
    wire = Chat()
    call = ("call", "c1", "write_file", '{"path": "notes.txt", "content": "x"}')
    answers = [wire.reply(call, finish="tools"), wire.reply(("text", "Then not."))]
    async with session(tmp_path, *answers, decide=lambda _: "reject") as (provider, client, session_id):
        assert (await client.prompt(session_id, "write it")).stop_reason == "end_turn"
        assert client.text() == "Then not."
    assert not (tmp_path / "notes.txt").exists()
    result = provider.requests[1].body["messages"][-1]
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")


async def test_a_linked_file_goes_with_the_prompt(tmp_path):
    (tmp_path / "a b.txt").write_text("one\ntwo\n")
    wire = Chat()
    async with session(tmp_path, wire.reply(("text", "I see."))) as (provider, client, session_id):
        uri = f"{(tmp_path / 'a b.txt').as_uri()}#L2"
        blocks = [{"type": "text", "text": "explain"}, {"type": "resource_link", "name": "a", "uri": uri}]
        await client.connection.call_extension("session/prompt", {"sessionId": session_id, "prompt": blocks})
    said = provider.requests[0].body["messages"][-1]["content"]
    assert said[-1]["text"] == f'<resource uri="{uri}">\ntwo\n\n</resource>'


async def test_a_rate_limit_is_shown_and_waited_out(tmp_path):
    limited = Refusal(429, "slow down", AT_ONCE)
    async with session(tmp_path, limited, Chat().reply(("text", "Hi"))) as (provider, client, session_id):
        assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"
        assert "limits the rate of requests: slow down; trying again" in thoughts_of(client)
        assert client.text() == "Hi"
    assert len(provider.requests) == 2


@pytest.mark.parametrize("before", [[], ["Half of "]], ids=["at once", "half-way"])
async def test_a_dropped_connection_is_shown_and_asked_again(before, tmp_path):
    wire = Chat()
    dropped = wire.reply(("text", *before), end="drop") if before else Stream([], "drop")
    async with session(tmp_path, dropped, wire.reply(("text", "All of it"))) as (_, client, session_id):
        assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"
        assert "was lost; trying again" in thoughts_of(client)
        assert client.text() == "".join(before) + "All of it"


async def test_the_next_request_does_not_hold_what_a_dropped_reply_said(tmp_path):
    wire = Chat()
    answers = [wire.reply(("text", "Half of "), end="drop"), wire.reply(("text", "All of it"))]
    async with session(tmp_path, *answers) as (provider, client, session_id):
        await client.prompt(session_id, "hi")
        await client.prompt(session_id, "and now?")
    assert "Half of " not in str(provider.requests[-1].body["messages"])


async def test_a_cancel_while_it_streams_hangs_up_and_the_session_goes_on(tmp_path):
    wire = Chat()
    answers = [wire.reply(("text", "Once upon "), end="hang"), wire.reply(("text", "Hi"))]
    async with session(tmp_path, *answers) as (provider, client, session_id):
        turn = asyncio.create_task(client.prompt(session_id, "tell"))
        await client.wait_for(lambda c: "Once" in c.text())
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"
        await provider.hung_up.wait()
        assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"


async def test_a_missing_key_asks_for_authentication(tmp_path):
    write_agent_file("openai:gpt-5")
    async with session_with_agent(tmp_path) as (client, session_id):
        with pytest.raises(RemoteError) as caught:
            await client.prompt(session_id, "hi")
    assert caught.value.code == ErrorCode.AUTH_REQUIRED
    assert "set OPENAI_API_KEY" in f"{caught.value.message} {caught.value.data}"


async def test_a_wrong_key_says_what_to_do_and_does_not_show_it(tmp_path):
    refusal = Refusal(401, f"Incorrect API key provided: {KEY}")
    async with session(tmp_path, refusal) as (provider, client, session_id):
        with pytest.raises(RemoteError) as caught:
            await client.prompt(session_id, "hi")
        said = f"{caught.value.message} {caught.value.data} {client.text()}"
    assert caught.value.code == ErrorCode.AUTH_REQUIRED
    assert "did not accept the key: Incorrect API key provided" in said
    assert "set the model's api_key in the agent file" in said
    assert KEY not in said
    assert len(provider.requests) == 1
    assert not any(KEY in log.read_text() for log in Path(os.environ["DRAGOMAN_HOME"]).rglob("*.jsonl"))


async def test_a_key_may_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    async with session(tmp_path, Chat().reply(("text", "Hi")), more=("  api_key: env://MY_KEY",)) as (
        provider,
        client,
        session_id,
    ):
        await client.prompt(session_id, "hi")
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_server_that_is_not_running_is_said_at_once(tmp_path):
    async with loopback() as provider:
        url = provider.url
    write_agent_file("openai:any", f"{url}/v1")
    async with session_with_agent(tmp_path) as (client, session_id):
        with pytest.raises(RemoteError) as caught:
            await client.prompt(session_id, "hi")
        assert f"nothing answers at {url}/v1; start the server there" in client.text()
    assert caught.value.code == ErrorCode.INTERNAL_ERROR


async def test_a_model_from_the_environment_is_found_at_its_address_from_there(tmp_path, monkeypatch):
    wire = Chat()
    async with loopback(wire.reply(("text", "Hi"))) as provider:
        monkeypatch.setenv("DRAGOMAN_MODEL", "vllm:some/model")
        monkeypatch.setenv("VLLM_BASE_URL", f"{provider.url}/v1")
        async with session_with_agent(tmp_path) as (client, session_id):
            await client.prompt(session_id, "hi")
            assert client.text() == "Hi"
    assert provider.requests[0].body["model"] == "some/model"
