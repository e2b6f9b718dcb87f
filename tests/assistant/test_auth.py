"""A client is told how to log in where the model needs a key, and a key counts from the moment it is given."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from dragoman.assistant import ConfiguredModel, make_agent
from dragoman.assistant.auth import configured_model, find_auth
from dragoman.assistant.keys import KeyStore
from dragoman.assistant.models.provider import provider_model
from dragoman.assistant.models.providers import PROVIDERS, ProviderOptions
from dragoman.assistant.setup import AgentSetup
from dragoman.errors import ErrorCode, MissingKey
from dragoman.loading import load_in_background
from dragoman.protocol import v1
from dragoman.protocol.methods import AUTH_STATUS, AUTH_STATUS_UPDATE, AUTHENTICATE, LOGOUT
from dragoman.store import FileStore
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.assistant.models.asking import AT_ONCE, KEY, asked, parts_of, text_of
from tests.assistant.models.loopback import Anthropic, loopback
from tests.errors import refused

MODEL = "anthropic:claude-opus-5"
TERMINAL = v1.ClientCapabilities(auth=v1.AuthCapabilities(terminal=True))


pytestmark = pytest.mark.usefixtures("no_keys")


@pytest.fixture
def keys(tmp_path):
    return KeyStore(tmp_path)


@asynccontextmanager
async def agent_with(home, name=MODEL, **options):
    """Our agent with a provider's model, as the command line sets it up."""
    near, far = memory_pair()
    model = provider_model(name, ProviderOptions(retry=AT_ONCE))
    agent = make_agent(
        lambda: FileStore(home),
        lambda: AgentSetup(home, model=model),
        lambda: ConfiguredModel(find_auth(name, str(home))),
    )
    async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.serve(far))
        async with ScriptedClient(near, **options) as client:
            yield client, await client.initialize()


@asynccontextmanager
async def anthropic(monkeypatch, *texts):
    """Anthropic's own address, here on the loopback."""
    wire = Anthropic()
    async with loopback(*(wire.reply(("text", text)) for text in texts)) as provider:
        here = msgspec.structs.replace(PROVIDERS["anthropic"], base_url=provider.url + wire.base_path)
        monkeypatch.setitem(PROVIDERS, "anthropic", here)
        yield provider


def authenticate(client, method_id):
    return client.connection.call(AUTHENTICATE, v1.AuthenticateRequest(method_id=method_id))


# ── what is offered ─────────────────────────────────────────────────────────────────────────────────


async def test_every_client_is_told_in_words_how_the_key_is_given(tmp_path):
    async with agent_with(tmp_path) as (_, answer):
        [method] = answer.auth_methods
        assert isinstance(method, v1.AuthMethodAgent)
        assert method.id == "anthropic-key"
        assert "set ANTHROPIC_API_KEY in the environment" in method.description
        assert "run `dragoman login anthropic` in a terminal" in method.description


async def test_a_client_that_can_is_offered_a_login_in_a_terminal_too(tmp_path):
    async with agent_with(tmp_path, capabilities=TERMINAL) as (_, answer):
        _, terminal = answer.auth_methods
        assert isinstance(terminal, v1.AuthMethodTerminal)
        assert (terminal.id, terminal.args, terminal.env) == ("anthropic-login", ["--login", "anthropic"], {})


@pytest.mark.parametrize("name", ["openai:gpt-5", "openai-chat:gpt-5", "openai-responses:gpt-5"])
async def test_a_provider_of_several_formats_has_one_key(name, tmp_path):
    async with agent_with(tmp_path, name) as (client, _):
        KeyStore(tmp_path).keep("openai", KEY)
        await authenticate(client, "openai-key")


@pytest.mark.parametrize(
    "name", [None, "", "guide", "script:x.yaml", "local:x.gguf", "ollama:qwen3", "bedrock:x", "litellm:x", "nobody:x"]
)
def test_a_model_that_needs_no_key_of_ours_needs_no_login(name, tmp_path):
    assert find_auth(name, str(tmp_path)) is None


async def test_a_terminal_is_not_offered_where_its_key_would_not_be_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.invalid")
    async with agent_with(tmp_path, capabilities=TERMINAL) as (_, answer):
        [method] = answer.auth_methods
        assert "not sent to where ANTHROPIC_BASE_URL leads" in method.description
        assert answer.agent_capabilities.auth.logout is None


# ── the state of the login ──────────────────────────────────────────────────────────────────────────


async def test_a_client_learns_whether_the_key_is_there_and_when_that_changes(tmp_path, keys):
    async with agent_with(tmp_path) as (client, answer):
        assert answer.agent_capabilities.auth.status is not None
        updates = []
        client.routes.on_notification(AUTH_STATUS_UPDATE, updates.append)
        ask = v1.AuthStatusRequest()
        keys.keep("anthropic", KEY)
        await authenticate(client, "anthropic-key")
        assert updates == []  # a client that has never asked may not know of it
        status = await client.connection.call(AUTH_STATUS, ask)
        assert status == v1.AuthStatusResponse(
            state="authenticated", accounts=[v1.AuthAccount(label="Anthropic API key", active=True)]
        )
        await client.connection.call(LOGOUT, v1.LogoutRequest())
        assert [update.state for update in updates] == ["unauthenticated"]
        keys.keep("anthropic", KEY)
        await authenticate(client, "anthropic-key")
        await authenticate(client, "anthropic-key")
        assert [update.state for update in updates] == ["unauthenticated", "authenticated"]
        assert KEY not in repr(status)


async def test_keys_that_cannot_be_read_leave_the_state_unknown(tmp_path):
    (tmp_path / "keys.json").write_text("{")
    async with agent_with(tmp_path) as (client, _):
        assert (await client.connection.call(AUTH_STATUS, v1.AuthStatusRequest())).state == "unknown"


FILES = {
    "none": None,
    "provider": "model: openai:gpt-5\n",
    "mapping": "model:\n  name: openai:gpt-5\n",
    "own address": "model:\n  name: openai:gpt-5\n  base_url: http://localhost:1/v1\n",
    "own key": "model:\n  name: openai:gpt-5\n  api_key: env://MINE\n",
    "guide": "model: guide\n",
    "comment": "# model: openai:gpt-5\nlimits: {turn_requests: 3}\n",
    "wrong": "model: openai:gpt-5\nmodle: 1\n",
}


@pytest.mark.parametrize(
    ("file", "default", "found"),
    [
        ("none", None, None),
        ("none", "groq:x", "groq:x"),
        ("provider", None, "openai:gpt-5"),
        ("provider", "groq:x", "openai:gpt-5"),
        ("mapping", None, "openai:gpt-5"),
        ("own address", "groq:x", None),
        ("own key", "groq:x", None),
        ("guide", "groq:x", "guide"),
        ("comment", None, None),
        ("comment", "groq:x", "groq:x"),
        ("wrong", "groq:x", None),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_the_configured_model_is_the_one_that_sessions_begin_with(file, default, found, named, tmp_path):
    path = tmp_path / ("mine.yaml" if named else "dragoman.yaml")
    if FILES[file] is not None:
        path.write_text(FILES[file])
    given = {"agent_file": str(path) if named else None, "default_model": default}
    assert configured_model(str(tmp_path), model=None, **given).asks_login == found
    assert configured_model(str(tmp_path), model=MODEL, **given).asks_login == MODEL


# ── authenticate ────────────────────────────────────────────────────────────────────────────────────


async def test_authenticate_without_a_key_says_what_to_do(tmp_path):
    async with agent_with(tmp_path, capabilities=TERMINAL) as (client, _):
        error = await refused(authenticate(client, "anthropic-key"))
        assert error.code == ErrorCode.AUTH_REQUIRED
        assert "set ANTHROPIC_API_KEY" in error.data["problem"]
        assert error.data["authMethods"] == ["anthropic-key", "anthropic-login"]


async def test_authenticate_succeeds_with_a_key_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with agent_with(tmp_path) as (client, _):
        await authenticate(client, "anthropic-key")


async def test_authenticate_succeeds_once_a_key_is_kept(tmp_path, keys):
    async with agent_with(tmp_path) as (client, _):
        await refused(authenticate(client, "anthropic-key"))
        keys.keep("openai", "other")
        await refused(authenticate(client, "anthropic-key"))
        keys.keep("anthropic", KEY)
        await authenticate(client, "anthropic-key")


async def test_a_terminal_method_is_not_for_authenticate(tmp_path, keys):
    keys.keep("anthropic", KEY)
    async with agent_with(tmp_path, capabilities=TERMINAL) as (client, _):
        error = await refused(authenticate(client, "anthropic-login"))
        assert (error.code, error.data["path"]) == (ErrorCode.INVALID_PARAMS, "params.methodId")
        assert "run it in a terminal, then connect again" in error.data["problem"]


@pytest.mark.parametrize("method_id", ["magic", "anthropic-login", "openai-key", ""])
async def test_a_method_that_was_not_offered_is_refused_with_those_that_were(method_id, tmp_path):
    async with agent_with(tmp_path) as (client, _):
        error = await refused(authenticate(client, method_id))
        assert error.code == ErrorCode.INVALID_PARAMS
        assert error.data["problem"] == f"{method_id!r} was not offered; this agent offers anthropic-key"


# ── session/prompt ──────────────────────────────────────────────────────────────────────────────────


async def test_a_prompt_without_a_key_names_the_methods_and_the_next_one_works_after_a_login(
    tmp_path, keys, monkeypatch
):
    async with anthropic(monkeypatch, "Hi") as provider, agent_with(tmp_path, capabilities=TERMINAL) as (client, _):
        session_id = await client.new_session(str(tmp_path))
        error = await refused(client.prompt(session_id, "hello"))
        assert error.code == ErrorCode.AUTH_REQUIRED
        assert "Anthropic needs a key for anthropic:claude-opus-5; set ANTHROPIC_API_KEY" in error.data["problem"]
        assert error.data["authMethods"] == ["anthropic-key", "anthropic-login"]
        assert not provider.requests
        keys.keep("anthropic", KEY)
        assert (await client.prompt(session_id, "hello")).stop_reason == "end_turn"
        assert client.text().endswith("Hi")
        assert KEY in str(provider.requests[0].headers)


async def test_a_key_that_was_replaced_counts_with_the_next_prompt(tmp_path, keys, monkeypatch):
    keys.keep("anthropic", "sk-first-000000")
    async with anthropic(monkeypatch, "one", "two") as provider, agent_with(tmp_path) as (client, _):
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, "hello")
        keys.keep("anthropic", KEY)
        await client.prompt(session_id, "hello")
        assert client.text() == "onetwo"
        assert ["sk-first-000000" in str(request.headers) for request in provider.requests] == [True, False]
        assert KEY in str(provider.requests[1].headers)


async def test_a_key_of_the_environment_counts_before_a_kept_one(tmp_path, keys, monkeypatch):
    keys.keep("anthropic", "sk-kept-000000")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with anthropic(monkeypatch, "Hi") as provider, agent_with(tmp_path) as (client, _):
        await client.prompt(await client.new_session(str(tmp_path)), "hello")
        assert KEY in str(provider.requests[0].headers)
        assert "sk-kept-000000" not in str(provider.requests[0].headers)


async def test_keys_that_cannot_be_used_are_said_and_not_shown(tmp_path, keys):
    keys.keep("anthropic", KEY)
    keys.path.chmod(0o644)
    async with agent_with(tmp_path) as (client, _):
        session_id = await client.new_session(str(tmp_path))
        for call in (client.prompt(session_id, "hello"), authenticate(client, "anthropic-key")):
            error = await refused(call)
            assert error.code == ErrorCode.AUTH_REQUIRED
            assert "other users may read or write it; run `chmod 600" in error.data["problem"]
            assert KEY not in str(error.data)


async def test_a_model_of_another_provider_is_not_helped_by_the_methods_of_this_one(tmp_path, keys):
    keys.keep("anthropic", KEY)
    async with agent_with(tmp_path) as (client, _):
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, "/model openai:gpt-5")
        error = await refused(client.prompt(session_id, "hello"))
        assert "run `dragoman login openai`" in error.words
        assert error.code == ErrorCode.INTERNAL_ERROR
    await asyncio.wrap_future(load_in_background(lambda: None))  # behind the library, which is still being imported


# ── where a kept key goes ───────────────────────────────────────────────────────────────────────────


async def test_a_kept_key_is_not_sent_to_an_address_of_ones_own(keys):
    keys.keep("anthropic", KEY)
    wire = Anthropic()
    async with asked(wire, wire.reply(("text", "Hi")), api_key=None) as (provider, model):
        model.use_keys(keys)
        assert text_of(await parts_of(model)) == "Hi"
    assert KEY not in str(provider.requests[0].headers)


async def test_a_kept_key_is_not_sent_where_the_environment_leads(keys, monkeypatch):
    keys.keep("anthropic", KEY)
    wire = Anthropic()
    async with loopback(wire.reply(("text", "Hi"))) as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        model = provider_model(MODEL, ProviderOptions(retry=AT_ONCE))
        model.use_keys(keys)
        with pytest.raises(MissingKey, match="not sent to where ANTHROPIC_BASE_URL leads"):
            await parts_of(model)
    assert not provider.requests


# ── logout ──────────────────────────────────────────────────────────────────────────────────────────


async def test_logout_forgets_the_key_of_this_provider_alone(tmp_path, keys, monkeypatch):
    keys.keep("anthropic", KEY)
    keys.keep("openai", "other")
    async with anthropic(monkeypatch, "Hi"), agent_with(tmp_path) as (client, answer):
        assert answer.agent_capabilities.auth.logout == v1.LogoutCapabilities()
        assert answer.agent_capabilities.load_session
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, "hello")
        await client.connection.call(LOGOUT, v1.LogoutRequest())
        assert (keys.find("anthropic"), keys.find("openai")) == (None, "other")
        assert (await refused(client.prompt(session_id, "hello"))).code == ErrorCode.AUTH_REQUIRED
        assert (await refused(authenticate(client, "anthropic-key"))).code == ErrorCode.AUTH_REQUIRED


async def test_logout_is_not_offered_while_the_key_comes_from_the_environment(tmp_path, keys, monkeypatch):
    keys.keep("anthropic", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with agent_with(tmp_path) as (client, answer):
        assert answer.agent_capabilities.auth.logout is None
        error = await refused(client.connection.call(LOGOUT, v1.LogoutRequest()))
        assert error.code == ErrorCode.METHOD_NOT_FOUND
        assert keys.find("anthropic") == KEY


async def test_a_logout_that_cannot_be_done_is_said(tmp_path, keys):
    keys.keep("anthropic", KEY)
    keys.path.write_text("damaged")
    async with agent_with(tmp_path) as (client, _):
        error = await refused(client.connection.call(LOGOUT, v1.LogoutRequest()))
        assert error.code == ErrorCode.INTERNAL_ERROR
        assert "it is damaged; remove it" in error.data
