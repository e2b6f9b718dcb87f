"""A new user's setup: `dragoman agent` as an editor starts it, an agent file, and a local provider."""

import asyncio
import json
import os
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from dragoman.errors import ErrorCode, RemoteError
from dragoman.proc import EVERYTHING, Supervisor
from dragoman.protocol import v1
from dragoman.testing import ScriptedClient
from dragoman.wire import StdioTransport
from tests.assistant.models.loopback import Anthropic, Chat, Google, Refusal, Stream, loopback
from tests.commands import DRAGOMAN

KEY = "sk-canary-19ab44f0"
AT_ONCE = {"retry-after-ms": "1"}


VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "DRAGOMAN_MODEL")

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("no_keys")]


def write_agent_file(name, url=None, *more):
    lines = ["model:", f"  name: {name}", *([f"  base_url: {url}"] if url else []), *more]
    home = Path(os.environ["DRAGOMAN_HOME"])
    home.mkdir(exist_ok=True)
    (home / "dragoman.yaml").write_text("\n".join(lines) + "\n")


@asynccontextmanager
async def running_agent(decide=lambda _: "allow"):
    async with Supervisor() as supervisor:
        child = await supervisor.start([*DRAGOMAN, "agent"], inherit=EVERYTHING)
        transport = StdioTransport.for_child(child)
        async with ScriptedClient(transport, decide=decide) as client:
            await client.initialize()
            yield client


@asynccontextmanager
async def session_with_agent(cwd):
    async with asyncio.timeout(50), running_agent() as client:
        yield client, await client.new_session(str(cwd))


@asynccontextmanager
async def session(cwd, *answers, wire=None, more=(f"  api_key: {KEY}",)):
    """Yield a session with an agent whose file names a provider with these answers."""
    wire = wire or Chat()
    async with loopback(*answers) as provider:
        write_agent_file(wire.model, provider.url + wire.base_path, *more)
        async with session_with_agent(cwd) as (client, session_id):
            yield provider, client, session_id


class SharedAgent:
    """An agent and its provider, shared by tests that need no separate one. Each test has its own session."""

    def __init__(self, home, provider):
        self.home = home
        self._provider = provider
        self._decide = None

    @asynccontextmanager
    async def running(self):
        async with running_agent(lambda asked: self._decide(asked)) as self._client:
            yield self

    async def session(self, cwd, *answers, decide=lambda _: "allow"):
        self._decide = decide
        self._provider.begin_anew(*answers)
        self._client.updates.clear()
        self._client.permissions.clear()
        return self._provider, self._client, await self._client.new_session(str(cwd))


@asynccontextmanager
async def shared_agent(home):
    with pytest.MonkeyPatch.context() as patch:
        for variable in VARIABLES:
            patch.delenv(variable, raising=False)
        patch.setenv("DRAGOMAN_HOME", str(home))
        async with loopback() as provider:
            write_agent_file(Chat.model, provider.url + Chat.base_path, f"  api_key: {KEY}")
            async with SharedAgent(home, provider).running() as shared:
                yield shared


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def agent(tmp_path_factory):
    started, leave = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def keep():
        """Runs in its own task, because a fixture's setup and teardown are in different tasks."""
        async with shared_agent(tmp_path_factory.mktemp("home")) as shared:
            started.set_result(shared)
            await leave.wait()

    keeping = asyncio.create_task(keep())
    await asyncio.wait([started, keeping], return_when=asyncio.FIRST_COMPLETED)
    yield started.result() if started.done() else keeping.result()
    leave.set()
    await keeping


def of(kind, client):
    return [update for update in client.conversation() if isinstance(update, kind)]


def thoughts_of(client):
    return "".join(update.content.text for update in of(v1.AgentThoughtChunk, client))


async def test_prompt_is_answered_as_the_text_streams(agent, tmp_path):
    wire = Chat()
    reply = wire.reply(("thought", "Hm."), ("text", "Hel", "lo ", "you"), usage=(120, 45))
    provider, client, session_id = await agent.session(tmp_path, reply)
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


def file_writing(wire):
    call = ("call", "c1", "write_file", '{"path": "notes.txt", ', '"content": "buy milk\\n"}')
    return [
        wire.reply(("text", "I write it."), call, finish="tools", usage=(500, 50)),
        wire.reply(("text", "Done."), usage=(1_000, 100)),
    ]


async def check_file_writing(provider, client, session_id, cwd):
    """Send a prompt and check all results of the answers above."""
    assert (await client.prompt(session_id, "write it")).stop_reason == "end_turn"
    assert client.text() == "I write it.Done."
    [permission] = client.permissions
    [diff] = permission.tool_call.content
    assert (diff.path, diff.new_text) == (str(cwd / "notes.txt"), "buy milk\n")
    [announced] = of(v1.ToolCall, client)
    assert announced.status == "pending"
    assert of(v1.ToolCallProgress, client)[-1].status == "completed"
    assert (cwd / "notes.txt").read_text() == "buy milk\n"
    assert len(provider.requests) == 2


async def test_file_is_written_once_the_user_allows_it(agent, tmp_path):
    await check_file_writing(*await agent.session(tmp_path, *file_writing(Chat())), tmp_path)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("wire", "size"),
    [
        pytest.param(Anthropic(), 1_000_000, id="Anthropic"),
        pytest.param(Google(), 32_768, id="Google", marks=pytest.mark.extended),
    ],
)
async def test_other_providers_write_a_file_and_report_a_known_cost(wire, size, tmp_path):
    async with session(tmp_path, *file_writing(wire), wire=wire) as (provider, client, session_id):
        await check_file_writing(provider, client, session_id, tmp_path)
        usage = of(v1.UsageUpdate, client)[-1]
        assert (usage.used, usage.size) == (1_100, size)
        assert usage.cost.currency == "USD"
        assert usage.cost.amount > 0


async def test_denial_reaches_the_model(agent, tmp_path):
    wire = Chat()
    call = ("call", "c1", "write_file", '{"path": "notes.txt", "content": "x"}')
    answers = [wire.reply(call, finish="tools"), wire.reply(("text", "Then not."))]
    provider, client, session_id = await agent.session(tmp_path, *answers, decide=lambda _: "reject")
    assert (await client.prompt(session_id, "write it")).stop_reason == "end_turn"
    assert client.text() == "Then not."
    assert not (tmp_path / "notes.txt").exists()
    result = provider.requests[1].body["messages"][-1]
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")


async def test_linked_file_is_sent_with_the_prompt(agent, tmp_path):
    (tmp_path / "a b.txt").write_text("one\ntwo\n")
    wire = Chat()
    provider, client, session_id = await agent.session(tmp_path, wire.reply(("text", "I see.")))
    uri = f"{(tmp_path / 'a b.txt').as_uri()}#L2"
    blocks = [{"type": "text", "text": "explain"}, {"type": "resource_link", "name": "a", "uri": uri}]
    await client.connection.call_extension("session/prompt", {"sessionId": session_id, "prompt": blocks})
    said = provider.requests[0].body["messages"][-1]["content"]
    assert said[-1]["text"] == f'<resource uri="{uri}">\ntwo\n\n</resource>'


async def test_rate_limit_is_shown_and_waited_for(agent, tmp_path):
    limited = Refusal(429, "slow down", AT_ONCE)
    provider, client, session_id = await agent.session(tmp_path, limited, Chat().reply(("text", "Hi")))
    assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"
    assert "is rate limiting requests: slow down; trying again" in client.notices()[0]
    assert client.text() == "Hi"
    assert len(provider.requests) == 2


@pytest.mark.parametrize("before", [[], ["Half of "]], ids=["at once", "half-way"])
async def test_dropped_connection_is_shown_and_retried(agent, before, tmp_path):
    wire = Chat()
    dropped = wire.reply(("text", *before), end="drop") if before else Stream([], "drop")
    _, client, session_id = await agent.session(tmp_path, dropped, wire.reply(("text", "All of it")))
    assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"
    assert "was lost; trying again" in client.notices()[0]
    assert client.text() == "".join(before) + "All of it"


@asynccontextmanager
async def running(command, *answers, prompt="hi", options=()):
    """Run `dragoman run` or `chat` without a terminal, with a provider that gives these answers."""
    wire = Chat()
    async with asyncio.timeout(50), loopback(*answers) as provider:
        write_agent_file(wire.model, provider.url + wire.base_path, f"  api_key: {KEY}")
        pipe = asyncio.subprocess.PIPE
        words = [prompt] if command == "run" else []
        child = await asyncio.create_subprocess_exec(
            *DRAGOMAN, command, *words, *options, stdin=pipe, stdout=pipe, stderr=pipe
        )
        stdout, stderr = await child.communicate(None if words else f"{prompt}\n".encode())
        yield child.returncode, stdout.decode(), stderr.decode()


def cut_off(*texts):
    return Stream(Chat().reply(("text", *texts), end="drop").events)


@pytest.mark.extended
@pytest.mark.parametrize("command", ["run", "chat"])
async def test_broken_off_text_is_not_printed(command):
    answers = [cut_off("Half ", "of "), Chat().reply(("text", "All of ", "it"))]
    async with running(command, *answers) as (code, stdout, stderr):
        assert (code, stdout) == (0, "All of it\n")
        assert "ended its answer early; trying again in " in stderr


@pytest.mark.extended
async def test_broken_off_text_is_not_in_the_json():
    answers = [cut_off("Half ", "of "), Chat().reply(("text", "All of ", "it"))]
    async with running("run", *answers, options=["--format", "json"]) as (code, stdout, stderr):
        said = json.loads(stdout)
        assert (code, said["text"], said["error"]) == (0, "All of it", None)
        [notice] = said["notices"]
        assert notice["severity"] == "info"
        assert "ended its answer early; trying again in " in notice["title"]
        assert notice["title"] in stderr


@pytest.mark.extended
async def test_repeatedly_broken_answer_is_an_error():
    async with running("run", cut_off("Half of "), Refusal(400, "no more"), options=["--format", "json"]) as ran:
        code, stdout, stderr = ran
        said = json.loads(stdout)
        assert (code, said["exit_code"], said["stop_reason"], said["text"]) == (1, 1, None, "")
        assert "no more" in said["error"]
        assert stderr.count("no more") == 1


async def test_next_request_excludes_a_dropped_reply(agent, tmp_path):
    wire = Chat()
    answers = [wire.reply(("text", "Half of "), end="drop"), wire.reply(("text", "All of it"))]
    provider, client, session_id = await agent.session(tmp_path, *answers)
    await client.prompt(session_id, "hi")
    await client.prompt(session_id, "and now?")
    assert "Half of " not in str(provider.requests[-1].body["messages"])


async def test_cancel_during_the_stream_closes_it_and_the_session_continues(agent, tmp_path):
    wire = Chat()
    answers = [wire.reply(("text", "Once upon "), end="hang"), wire.reply(("text", "Hi"))]
    provider, client, session_id = await agent.session(tmp_path, *answers)
    turn = asyncio.create_task(client.prompt(session_id, "tell"))
    await client.wait_for(lambda c: "Once" in c.text())
    await client.cancel(session_id)
    assert (await turn).stop_reason == "cancelled"
    await provider.hung_up.wait()
    assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"


async def test_missing_key_asks_for_authentication(tmp_path):
    write_agent_file("openai:gpt-5")
    async with session_with_agent(tmp_path) as (client, session_id):
        with pytest.raises(RemoteError) as caught:
            await client.prompt(session_id, "hi")
    assert caught.value.code == ErrorCode.AUTH_REQUIRED
    assert "set OPENAI_API_KEY" in f"{caught.value.message} {caught.value.data}"


async def test_wrong_key_explains_what_to_do_without_showing_it(agent, tmp_path):
    refusal = Refusal(401, f"Incorrect API key provided: {KEY}")
    provider, client, session_id = await agent.session(tmp_path, refusal)
    with pytest.raises(RemoteError) as caught:
        await client.prompt(session_id, "hi")
    said = f"{caught.value.message} {caught.value.data} {client.text()}"
    assert caught.value.code == ErrorCode.INTERNAL_ERROR
    assert "did not accept the key: Incorrect API key provided" in said
    assert "set the model's api_key in the agent file" in said
    assert KEY not in said
    assert len(provider.requests) == 1
    assert not any(KEY in log.read_text() for log in agent.home.rglob("*.jsonl"))


@pytest.mark.extended
async def test_key_may_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    async with session(tmp_path, Chat().reply(("text", "Hi")), more=("  api_key: env://MY_KEY",)) as (
        provider,
        client,
        session_id,
    ):
        await client.prompt(session_id, "hi")
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.extended
async def test_model_and_address_may_come_from_the_environment(tmp_path, monkeypatch):
    wire = Chat()
    async with loopback(wire.reply(("text", "Hi"))) as provider:
        monkeypatch.setenv("DRAGOMAN_MODEL", "vllm:some/model")
        monkeypatch.setenv("VLLM_BASE_URL", f"{provider.url}/v1")
        async with session_with_agent(tmp_path) as (client, session_id):
            await client.prompt(session_id, "hi")
            assert client.text() == "Hi"
    assert provider.requests[0].body["model"] == "some/model"
