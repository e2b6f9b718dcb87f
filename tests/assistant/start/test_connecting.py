"""Connecting a model through the protocol: tested, stored, and used at once without a restart."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from dragoman.assistant import make_agent
from dragoman.assistant.assistant import START_METHODS
from dragoman.assistant.keys import KeyStore
from dragoman.assistant.preferences import ChosenModel, PreferenceFile, Preferences, PreferencesFileError
from dragoman.assistant.setup import AgentSetup
from dragoman.store import FileStore
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.assistant.models.asking import KEY
from tests.assistant.models.loopback import Chat, Refusal, loopback
from tests.errors import refused

pytestmark = pytest.mark.usefixtures("no_keys")

CHAT = Chat()


@asynccontextmanager
async def agent_in(home):
    """Run our agent as `dragoman agent` starts it, without options."""
    near, far = memory_pair()
    agent = make_agent(lambda: FileStore(home), lambda: AgentSetup(home))
    async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.serve(far))
        async with ScriptedClient(near) as client:
            answer = await client.initialize()
            yield client, answer


def ask(client, name, **params):
    return client.connection.call_extension(START_METHODS[name], params)


def model_of(client):
    """Return the model in the last update of the options."""
    updates = [each.update for each in client.updates if each.update.__class__.__name__ == "ConfigOptionUpdate"]
    [option] = [option for option in updates[-1].config_options if option.id == "model"]
    return option.current_value


@pytest.fixture
def place(tmp_path):
    (tmp_path / "project").mkdir()
    return str(tmp_path / "project"), tmp_path / "home"


async def test_capabilities_name_the_requests(place):
    async with agent_in(place[1]) as (_, answer):
        assert answer.agent_capabilities.meta["dragoman/start"] == START_METHODS


async def test_session_and_new_sessions_use_the_connected_model(place):
    cwd, home = place
    async with loopback(CHAT.reply(("text", "I am a test."))) as server, agent_in(home) as (client, _):
        session = await client.new_session(cwd)
        assert (await ask(client, "introduce", cwd=cwd, sessionId=session))["isLanguageModel"] is False
        wish = {"provider": "openai", "model": "gpt-test", "apiKey": KEY, "baseUrl": server.url}
        connected = await ask(client, "connect", **wish, sessionId=session)
        assert (connected["model"], connected["answer"]) == ("openai:gpt-test", "I am a test.")
        assert connected["countsBefore"] is None
        assert model_of(client) == "openai:gpt-test"
        await client.prompt(session, "hello")
        assert client.text(session) == "I am a test."
        introduction = await ask(client, "introduce", cwd=cwd)
        assert (introduction["model"], introduction["isLanguageModel"]) == ("openai:gpt-test", True)
        assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    async with loopback(CHAT.reply(("text", "Again."))) as server, agent_in(home) as (client, _):
        PreferenceFile(home).choose_model(ChosenModel("openai:gpt-test", f"{server.url}/v1"))
        await client.prompt(session := await client.new_session(cwd), "hello")
        assert client.text(session) == "Again."
        assert "authorization" in server.requests[0].headers
        assert KEY not in server.requests[0].headers["authorization"], "the key is for the other address"


async def test_key_is_stored_as_login_does_next_to_the_choice(place):
    cwd, home = place
    async with loopback(CHAT.reply(("text", f"Your key is {KEY}."))) as server, agent_in(home) as (client, _):
        wish = {"provider": "openai", "model": "gpt-test", "apiKey": f" {KEY} ", "baseUrl": server.url}
        connected = await ask(client, "connect", **wish, cwd=cwd)
        assert KEY not in json.dumps(connected)
        assert json.loads(KeyStore(home).path.read_text()) == {f"{server.url}/v1": KEY}
        assert KeyStore(home).path.stat().st_mode & 0o777 == 0o600
        expected = {"model": {"name": "openai:gpt-test", "base_url": f"{server.url}/v1"}}
        assert json.loads((home / "preferences.json").read_text()) == expected


async def test_refused_key_is_reported_and_nothing_is_stored(place):
    cwd, home = place
    async with loopback(Refusal(401, f"bad key {KEY}")) as server, agent_in(home) as (client, _):
        wish = {"provider": "openai", "model": "gpt-test", "apiKey": KEY, "baseUrl": server.url}
        answer = await ask(client, "connect", **wish, cwd=cwd)
        assert "did not accept the key" in answer["problem"]
        assert KEY not in answer["problem"]
        assert list(home.glob("*.json")) == []


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"provider": "anthropic", "apiKey": "has blanks in it"}, "a key must be one line"),
        ({"provider": "nobody"}, "the provider 'nobody' is unknown"),
        ({"provider": "openrouter", "apiKey": "k"}, "name a model of OpenRouter"),
        ({"provider": "openai", "baseUrl": "ftp://x"}, "the server address is not valid"),
        ({"provider": "openai", "baseUrl": "http://a:b@x/v1"}, "leave these out"),
        ({"provider": "openai", "baseUrl": "http://127.0.0.1:1"}, "cannot be reached"),
        ({"provider": "anthropic", "model": "claude-opus-5"}, "Anthropic needs a key"),
    ],
)
async def test_impossible_wish_is_refused_with_the_reason(place, wish, words):
    async with agent_in(place[1]) as (client, _):
        assert words in (await ask(client, "connect", **wish))["problem"]


async def test_without_a_name_the_servers_first_model_is_used(place):
    cwd, home = place
    models = {"data": [{"id": "qwen3:8b"}, {"id": "other"}]}
    async with loopback(JsonAnswer(models), CHAT.reply(("text", "Hi."))) as server, agent_in(home) as (client, _):
        connected = await ask(client, "connect", provider="openai", baseUrl=server.url, cwd=cwd)
        assert connected["model"] == "openai:qwen3:8b"
        assert [request.path for request in server.requests] == ["/v1/models", "/v1/chat/completions"]


async def test_overriding_agent_file_is_reported(place):
    cwd, home = place
    home.mkdir()
    (home / "dragoman.yaml").write_text("model: guide\n")
    async with agent_in(home) as (client, _):
        connected = await ask(client, "connect", provider="guide", cwd=cwd)
        assert connected["countsBefore"] == f"the agent file {home / 'dragoman.yaml'} names guide"


async def test_choosing_a_model_replaces_the_chosen_agent(place):
    async with agent_in(place[1]) as (client, _):
        preferences = PreferenceFile(place[1])
        await ask(client, "chooseAgent", agent="opencode")
        assert preferences.read() == Preferences(agent="opencode")
        await ask(client, "connect", provider="guide")
        assert preferences.read() == Preferences(ChosenModel("guide"))
        error = await refused(ask(client, "chooseAgent", agent=1))
        assert "Expected `str | null`" in str(error)


def test_preferences_writable_by_others_are_refused(tmp_path):
    preferences = PreferenceFile(tmp_path)
    preferences.choose_agent("opencode")
    preferences.path.chmod(0o666)
    with pytest.raises(PreferencesFileError, match="other users can write it; remove it and choose again"):
        preferences.read()
    preferences.path.chmod(0o600)
    preferences.path.write_text("{")
    with pytest.raises(PreferencesFileError, match="it is damaged"):
        preferences.read()


class JsonAnswer(Refusal):
    """An answer with status 200 and one JSON value."""

    def __init__(self, value):
        super().__init__(200)
        self._value = value

    def body(self):
        return json.dumps(self._value).encode()
