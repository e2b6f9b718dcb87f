"""A model is connected through the protocol: asked one question, kept, and used from then on without a restart."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from dragoman.assistant import make_agent
from dragoman.assistant.assistant import START_METHODS
from dragoman.assistant.keys import KeyStore
from dragoman.assistant.preferences import ChosenModel, PreferenceFile, Preferences, PreferencesUnusable
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
    """Our agent as `dragoman agent` starts it, without options."""
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
    """The model that the last update of the options names."""
    told = [each.update for each in client.updates if each.update.__class__.__name__ == "ConfigOptionUpdate"]
    [option] = [option for option in told[-1].config_options if option.id == "model"]
    return option.current_value


@pytest.fixture
def place(tmp_path):
    (tmp_path / "project").mkdir()
    return str(tmp_path / "project"), tmp_path / "home"


async def test_the_agent_names_the_requests_among_its_capabilities(place):
    async with agent_in(place[1]) as (_, answer):
        assert answer.agent_capabilities.meta["dragoman/start"] == START_METHODS


async def test_a_session_takes_the_model_at_once_and_new_sessions_begin_with_it(place):
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


async def test_a_key_is_kept_as_login_keeps_it_and_the_choice_beside_it(place):
    cwd, home = place
    async with loopback(CHAT.reply(("text", f"Your key is {KEY}."))) as server, agent_in(home) as (client, _):
        wish = {"provider": "openai", "model": "gpt-test", "apiKey": f" {KEY} ", "baseUrl": server.url}
        connected = await ask(client, "connect", **wish, cwd=cwd)
        assert KEY not in json.dumps(connected)
        assert json.loads(KeyStore(home).path.read_text()) == {f"{server.url}/v1": KEY}
        assert KeyStore(home).path.stat().st_mode & 0o777 == 0o600
        expected = {"model": {"name": "openai:gpt-test", "base_url": f"{server.url}/v1"}}
        assert json.loads((home / "preferences.json").read_text()) == expected


async def test_a_refused_key_is_answered_with_the_reason_and_nothing_is_kept(place):
    cwd, home = place
    async with loopback(Refusal(401, f"bad key {KEY}")) as server, agent_in(home) as (client, _):
        wish = {"provider": "openai", "model": "gpt-test", "apiKey": KEY, "baseUrl": server.url}
        told = await ask(client, "connect", **wish, cwd=cwd)
        assert "did not accept the key" in told["problem"]
        assert KEY not in told["problem"]
        assert list(home.glob("*.json")) == []


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"provider": "anthropic", "apiKey": "has blanks in it"}, "that is no key"),
        ({"provider": "nobody"}, "there is no provider 'nobody'"),
        ({"provider": "openrouter", "apiKey": "k"}, "name a model of OpenRouter"),
        ({"provider": "openai", "baseUrl": "ftp://x"}, "that is no address of a server"),
        ({"provider": "openai", "baseUrl": "http://a:b@x/v1"}, "leave these out"),
        ({"provider": "openai", "baseUrl": "http://127.0.0.1:1"}, "cannot be reached"),
        ({"provider": "anthropic", "model": "claude-opus-5"}, "Anthropic needs a key"),
    ],
)
async def test_a_wish_that_cannot_be_met_says_why(place, wish, words):
    async with agent_in(place[1]) as (client, _):
        assert words in (await ask(client, "connect", **wish))["problem"]


async def test_without_a_name_the_first_model_of_a_server_is_taken(place):
    cwd, home = place
    models = {"data": [{"id": "qwen3:8b"}, {"id": "other"}]}
    async with loopback(JsonAnswer(models), CHAT.reply(("text", "Hi."))) as server, agent_in(home) as (client, _):
        connected = await ask(client, "connect", provider="openai", baseUrl=server.url, cwd=cwd)
        assert connected["model"] == "openai:qwen3:8b"
        assert [request.path for request in server.requests] == ["/v1/models", "/v1/chat/completions"]


async def test_an_agent_file_that_counts_before_the_choice_is_told(place):
    cwd, home = place
    home.mkdir()
    (home / "dragoman.yaml").write_text("model: guide\n")
    async with agent_in(home) as (client, _):
        connected = await ask(client, "connect", provider="guide", cwd=cwd)
        assert connected["countsBefore"] == f"the agent file {home / 'dragoman.yaml'} names guide"


async def test_an_agent_is_chosen_and_the_choice_of_a_model_takes_it_back(place):
    async with agent_in(place[1]) as (client, _):
        preferences = PreferenceFile(place[1])
        await ask(client, "chooseAgent", agent="opencode")
        assert preferences.read() == Preferences(agent="opencode")
        await ask(client, "connect", provider="guide")
        assert preferences.read() == Preferences(ChosenModel("guide"))
        error = await refused(ask(client, "chooseAgent", agent=1))
        assert "Expected `str | null`" in str(error)


def test_choices_that_others_could_have_written_are_refused(tmp_path):
    preferences = PreferenceFile(tmp_path)
    preferences.choose_agent("opencode")
    preferences.path.chmod(0o666)
    with pytest.raises(PreferencesUnusable, match="others can write it; remove it and choose again"):
        preferences.read()
    preferences.path.chmod(0o600)
    preferences.path.write_text("{")
    with pytest.raises(PreferencesUnusable, match="it is damaged"):
        preferences.read()


class JsonAnswer(Refusal):
    """An answer of status 200 that is one JSON value."""

    def __init__(self, value):
        super().__init__(200)
        self._value = value

    def body(self):
        return json.dumps(self._value).encode()
