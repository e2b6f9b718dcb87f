"""A client learns how to log in if the model needs a key, and a new key works at once."""

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
from dragoman.errors import ErrorCode, MissingKeyError
from dragoman.loading import load_in_background
from dragoman.protocol import v1
from dragoman.protocol.methods import AUTH_STATUS, AUTH_STATUS_UPDATE, AUTHENTICATE, LOGOUT
from dragoman.store import FileStore
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.assistant.models.asking import AT_ONCE, KEY, asked, parts_of, text_of
from tests.assistant.models.loopback import Anthropic, loopback
from tests.errors import refused
from tests.table import each_row

MODEL = "anthropic:claude-opus-5"
TERMINAL = v1.ClientCapabilities(auth=v1.AuthCapabilities(terminal=True))


pytestmark = pytest.mark.usefixtures("no_keys")


@pytest.fixture
def keys(tmp_path):
    return KeyStore(tmp_path)


@asynccontextmanager
async def agent_with(home, name=MODEL, **options):
    """Run our agent with a provider's model, as the command line does."""
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
    """Serve Anthropic's own address on the loopback interface."""
    wire = Anthropic()
    async with loopback(*(wire.reply(("text", text)) for text in texts)) as provider:
        here = msgspec.structs.replace(PROVIDERS["anthropic"], base_url=provider.url + wire.base_path)
        monkeypatch.setitem(PROVIDERS, "anthropic", here)
        yield provider


def authenticate(client, method_id):
    return client.connection.call(AUTHENTICATE, v1.AuthenticateRequest(method_id=method_id))


# ── offered methods ─────────────────────────────────────────────────────────────────────────────────


async def test_every_client_learns_how_to_provide_the_key(tmp_path):
    async with agent_with(tmp_path) as (_, answer):
        [method] = answer.auth_methods
        assert isinstance(method, v1.AuthMethodAgent)
        assert method.id == "anthropic-key"
        assert "set ANTHROPIC_API_KEY in dragoman's environment" in method.description
        assert "run `dragoman login anthropic` in a terminal" in method.description


async def test_capable_client_is_offered_a_terminal_login(tmp_path):
    async with agent_with(tmp_path, capabilities=TERMINAL) as (_, answer):
        _, terminal = answer.auth_methods
        assert isinstance(terminal, v1.AuthMethodTerminal)
        assert (terminal.id, terminal.args, terminal.env) == ("anthropic-login", ["--login", "anthropic"], {})


@pytest.mark.parametrize("name", ["openai:gpt-5", "openai-chat:gpt-5", "openai-responses:gpt-5"])
async def test_provider_with_several_formats_has_one_key(name, tmp_path):
    async with agent_with(tmp_path, name) as (client, _):
        KeyStore(tmp_path).save("openai", KEY)
        await authenticate(client, "openai-key")


@each_row("name", [None, "", "guide", "script:x.yaml", "ollama:qwen3", "bedrock:x", "litellm:x", "nobody:x"])
def test_model_without_a_key_of_ours_needs_no_login(name, tmp_path):
    assert find_auth(name, str(tmp_path)) is None


async def test_terminal_login_is_not_offered_if_its_key_would_not_be_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.invalid")
    async with agent_with(tmp_path, capabilities=TERMINAL) as (_, answer):
        [method] = answer.auth_methods
        assert "not sent to the address in ANTHROPIC_BASE_URL" in method.description
        assert answer.agent_capabilities.auth.logout is None


# ── the state of the login ──────────────────────────────────────────────────────────────────────────


async def test_client_learns_the_login_state_and_its_changes(tmp_path, keys):
    async with agent_with(tmp_path) as (client, answer):
        assert answer.agent_capabilities.auth.status is not None
        updates = []
        client.routes.on_notification(AUTH_STATUS_UPDATE, updates.append)
        ask = v1.AuthStatusRequest()
        keys.save("anthropic", KEY)
        await authenticate(client, "anthropic-key")
        assert updates == []  # a client that never asked may not know the notification
        status = await client.connection.call(AUTH_STATUS, ask)
        assert status == v1.AuthStatusResponse(
            state="authenticated", accounts=[v1.AuthAccount(label="Anthropic API key", active=True)]
        )
        await client.connection.call(LOGOUT, v1.LogoutRequest())
        assert [update.state for update in updates] == ["unauthenticated"]
        keys.save("anthropic", KEY)
        await authenticate(client, "anthropic-key")
        await authenticate(client, "anthropic-key")
        assert [update.state for update in updates] == ["unauthenticated", "authenticated"]
        assert KEY not in repr(status)


async def test_unreadable_keys_leave_the_state_unknown(tmp_path):
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


@each_row(
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
@each_row("named", [True, False])
def test_configured_model_is_the_one_of_new_sessions(file, default, found, named, tmp_path):
    path = tmp_path / ("mine.yaml" if named else "dragoman.yaml")
    if FILES[file] is not None:
        path.write_text(FILES[file])
    given = {"agent_file": str(path) if named else None, "default_model": default}
    assert configured_model(str(tmp_path), model=None, **given).login_model == found
    assert configured_model(str(tmp_path), model=MODEL, **given).login_model == MODEL


# ── authenticate ────────────────────────────────────────────────────────────────────────────────────


async def test_authenticate_without_a_key_explains_what_to_do(tmp_path):
    async with agent_with(tmp_path, capabilities=TERMINAL) as (client, _):
        error = await refused(authenticate(client, "anthropic-key"))
        assert error.code == ErrorCode.AUTH_REQUIRED
        assert "set ANTHROPIC_API_KEY" in error.data["problem"]
        assert error.data["authMethods"] == ["anthropic-key", "anthropic-login"]


async def test_authenticate_succeeds_with_a_key_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with agent_with(tmp_path) as (client, _):
        await authenticate(client, "anthropic-key")


async def test_authenticate_succeeds_once_a_key_is_stored(tmp_path, keys):
    async with agent_with(tmp_path) as (client, _):
        await refused(authenticate(client, "anthropic-key"))
        keys.save("openai", "other")
        await refused(authenticate(client, "anthropic-key"))
        keys.save("anthropic", KEY)
        await authenticate(client, "anthropic-key")


async def test_terminal_method_cannot_be_used_with_authenticate(tmp_path, keys):
    keys.save("anthropic", KEY)
    async with agent_with(tmp_path, capabilities=TERMINAL) as (client, _):
        error = await refused(authenticate(client, "anthropic-login"))
        assert (error.code, error.data["path"]) == (ErrorCode.INVALID_PARAMS, "params.methodId")
        assert "run it in a terminal, then connect again" in error.data["problem"]


@pytest.mark.parametrize("method_id", ["magic", "anthropic-login", "openai-key", ""])
async def test_unoffered_method_is_refused_with_the_offered_ones(method_id, tmp_path):
    async with agent_with(tmp_path) as (client, _):
        error = await refused(authenticate(client, method_id))
        assert error.code == ErrorCode.INVALID_PARAMS
        assert error.data["problem"] == f"{method_id!r} was not offered; this agent offers anthropic-key"


# ── session/prompt ──────────────────────────────────────────────────────────────────────────────────


async def test_prompt_without_a_key_names_the_methods_and_works_after_a_login(tmp_path, keys, monkeypatch):
    async with anthropic(monkeypatch, "Hi") as provider, agent_with(tmp_path, capabilities=TERMINAL) as (client, _):
        session_id = await client.new_session(str(tmp_path))
        error = await refused(client.prompt(session_id, "hello"))
        assert error.code == ErrorCode.AUTH_REQUIRED
        assert "Anthropic needs a key for anthropic:claude-opus-5; set ANTHROPIC_API_KEY" in error.data["problem"]
        assert error.data["authMethods"] == ["anthropic-key", "anthropic-login"]
        assert not provider.requests
        keys.save("anthropic", KEY)
        assert (await client.prompt(session_id, "hello")).stop_reason == "end_turn"
        assert client.text().endswith("Hi")
        assert KEY in str(provider.requests[0].headers)


async def test_replaced_key_is_used_for_the_next_prompt(tmp_path, keys, monkeypatch):
    keys.save("anthropic", "sk-first-000000")
    async with anthropic(monkeypatch, "one", "two") as provider, agent_with(tmp_path) as (client, _):
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, "hello")
        keys.save("anthropic", KEY)
        await client.prompt(session_id, "hello")
        assert client.text() == "onetwo"
        assert ["sk-first-000000" in str(request.headers) for request in provider.requests] == [True, False]
        assert KEY in str(provider.requests[1].headers)


async def test_environment_key_overrides_a_stored_one(tmp_path, keys, monkeypatch):
    keys.save("anthropic", "sk-kept-000000")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with anthropic(monkeypatch, "Hi") as provider, agent_with(tmp_path) as (client, _):
        await client.prompt(await client.new_session(str(tmp_path)), "hello")
        assert KEY in str(provider.requests[0].headers)
        assert "sk-kept-000000" not in str(provider.requests[0].headers)


async def test_unusable_keys_are_reported_without_being_shown(tmp_path, keys):
    keys.save("anthropic", KEY)
    keys.path.chmod(0o644)
    async with agent_with(tmp_path) as (client, _):
        session_id = await client.new_session(str(tmp_path))
        for call in (client.prompt(session_id, "hello"), authenticate(client, "anthropic-key")):
            error = await refused(call)
            assert error.code == ErrorCode.AUTH_REQUIRED
            assert "other users may read or write it; run `chmod 600" in error.data["problem"]
            assert KEY not in str(error.data)


async def test_model_of_another_provider_is_not_offered_these_methods(tmp_path, keys):
    keys.save("anthropic", KEY)
    async with agent_with(tmp_path) as (client, _):
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, "/model openai:gpt-5")
        error = await refused(client.prompt(session_id, "hello"))
        assert "run `dragoman login openai`" in error.text
        assert error.code == ErrorCode.INTERNAL_ERROR
    await asyncio.wrap_future(load_in_background(lambda: None))  # waits for the library, which is still being imported


# ── where a stored key is sent ──────────────────────────────────────────────────────────────────────


async def test_stored_key_is_not_sent_to_a_custom_address(keys):
    keys.save("anthropic", KEY)
    wire = Anthropic()
    async with asked(wire, wire.reply(("text", "Hi")), api_key=None) as (provider, model):
        model.use_keys(keys)
        assert text_of(await parts_of(model)) == "Hi"
    assert KEY not in str(provider.requests[0].headers)


async def test_stored_key_is_not_sent_to_an_address_from_the_environment(keys, monkeypatch):
    keys.save("anthropic", KEY)
    wire = Anthropic()
    async with loopback(wire.reply(("text", "Hi"))) as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        model = provider_model(MODEL, ProviderOptions(retry=AT_ONCE))
        model.use_keys(keys)
        with pytest.raises(MissingKeyError, match="not sent to the address in ANTHROPIC_BASE_URL"):
            await parts_of(model)
    assert not provider.requests


# ── logout ──────────────────────────────────────────────────────────────────────────────────────────


async def test_logout_deletes_only_the_key_of_this_provider(tmp_path, keys, monkeypatch):
    keys.save("anthropic", KEY)
    keys.save("openai", "other")
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
    keys.save("anthropic", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with agent_with(tmp_path) as (client, answer):
        assert answer.agent_capabilities.auth.logout is None
        error = await refused(client.connection.call(LOGOUT, v1.LogoutRequest()))
        assert error.code == ErrorCode.METHOD_NOT_FOUND
        assert keys.find("anthropic") == KEY


async def test_failed_logout_is_reported(tmp_path, keys):
    keys.save("anthropic", KEY)
    keys.path.write_text("damaged")
    async with agent_with(tmp_path) as (client, _):
        error = await refused(client.connection.call(LOGOUT, v1.LogoutRequest()))
        assert error.code == ErrorCode.INTERNAL_ERROR
        assert "it is damaged; remove it" in error.data
