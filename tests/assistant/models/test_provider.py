import asyncio
import logging
import re
import subprocess
import sys
import threading

import pytest

from dragoman.assistant.models import providers
from dragoman.assistant.models.provider import provider_model
from dragoman.assistant.models.providers import PROVIDERS, ProviderOptions, shown_url
from dragoman.errors import MissingKeyError, ModelError, UnknownModelError
from dragoman.installation import how_to_add
from dragoman.loading import load_in_background
from tests.assistant.models.asking import AT_ONCE, KEY, asked, parts_of, text_of
from tests.assistant.models.loopback import Anthropic, Chat, Google, Refusal, Responses, loopback

WIRES = [Chat(), Anthropic(), Responses(), Google()]
every_format = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)


pytestmark = pytest.mark.usefixtures("no_keys")


@pytest.mark.parametrize("name", ["nobody:gpt", "gpt-5", "openai:", ""])
def test_unknown_provider_name_is_refused(name):
    with pytest.raises(UnknownModelError):
        provider_model(name)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic:claude-opus-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("google:gemini-3", "GOOGLE"),
    ],
)
async def test_missing_key_error_names_the_variable(name, variable):
    with pytest.raises(MissingKeyError, match=f"set {variable}"):
        await parts_of(provider_model(name))


def test_missing_library_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(providers, "find_spec", lambda package: None)
    with pytest.raises(ModelError, match=re.escape(how_to_add("groq"))):
        provider_model("groq:llama")


def test_unknown_thought_level_is_refused():
    with pytest.raises(ModelError, match="expected one of off, minimal"):
        provider_model("anthropic:claude-opus-5", ProviderOptions(thought_level="deep"))


async def test_default_key_comes_from_the_environment(monkeypatch):
    wire = Anthropic()
    async with loopback(wire.reply(("text", "Hi"))) as provider:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        model = provider_model(wire.model, ProviderOptions(retry=AT_ONCE))
        assert text_of(await parts_of(model)) == "Hi"
        await model.close()
    assert KEY in str(provider.requests[0].headers)


@every_format
async def test_environment_key_is_not_sent_to_a_custom_address(wire, monkeypatch):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(variable, KEY)
    async with asked(wire, wire.reply(("text", "Hi")), api_key=None) as (provider, model):
        assert text_of(await parts_of(model)) == "Hi"
    assert KEY not in str(provider.requests[0].headers)


async def test_ollama_needs_no_key():
    wire = Chat()
    async with loopback(wire.reply(("text", "Hi"))) as provider:
        model = provider_model("ollama:qwen3", ProviderOptions(base_url=f"{provider.url}/v1", retry=AT_ONCE))
        assert text_of(await parts_of(model)) == "Hi"
        await model.close()


async def test_unknown_host_is_reported_as_such():
    url = "http://no-such-host.invalid"  # RFC 2606: no resolver knows it
    model = provider_model("ollama:qwen3", ProviderOptions(base_url=f"{url}/v1", retry=AT_ONCE))
    with pytest.raises(ModelError, match=f"{url}/v1 cannot be reached: its host name could not be resolved"):
        await parts_of(model)
    await model.close()


async def test_stopped_server_is_reported_at_once():
    async with loopback() as provider:
        url = provider.url
    model = provider_model("ollama:qwen3", ProviderOptions(base_url=f"{url}/v1"))
    with pytest.raises(ModelError, match=f"nothing answers at {url}/v1; start the server"):
        await parts_of(model)
    await model.close()


@every_format
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_secret_appears_in_no_output(wire, status, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    header = "canary-header-77aa01"
    echo = Refusal(status, f"Incorrect API key provided: {KEY}, with {header}", {"x-echo": "1"})
    async with asked(wire, echo, headers={"x-secret": header}) as (provider, model):
        with pytest.raises(ModelError) as caught:
            await parts_of(model)
    assert KEY in str(provider.requests[0].headers)
    options = ProviderOptions(api_key=KEY, headers={"x-secret": header})
    shown = [str(caught.value), repr(caught.value), repr(model), repr(options), caplog.text, *capfd.readouterr()]
    for place in shown:
        assert KEY not in place
        assert header not in place


async def test_provider_message_is_shortened_and_cleaned():
    wire = Chat()
    async with asked(wire, Refusal(400, "\x1b[31mbad\n\n" + "x" * 5000)) as (_, model):
        with pytest.raises(ModelError) as caught:
            await parts_of(model)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_shown_url_has_no_secrets():
    assert shown_url("https://me:pass@host:8443/v1?key=1") == "https://host:8443/v1"
    assert shown_url("http://[bad") == "an address that is not a URL"


@every_format
async def test_model_facts_come_with_the_library(wire):
    async with asked(wire, wire.reply(("text", "Hi"))) as (_, model):
        await parts_of(model)
        assert "image" in model.content_types
        assert model.context_size >= 32_768
        assert bool(model.thought_levels) == (wire.model != Chat.model)


async def test_context_size_of_a_known_model_is_used():
    wire = Anthropic()
    async with asked(wire, wire.reply(("text", "Hi"))) as (_, model):
        before = model.context_size
        await parts_of(model)
        assert model.context_size == 1_000_000 != before


async def test_configured_context_size_overrides_the_library():
    wire = Anthropic()
    async with asked(wire, wire.reply(("text", "Hi")), context_size=5000) as (_, model):
        await parts_of(model)
        assert model.context_size == 5000


def test_naming_a_model_imports_nothing_heavy():
    program = (
        "import sys\nfrom dragoman.assistant.models.provider import provider_model\n"
        "provider_model('anthropic:claude-opus-5')\n"
        "print([name for name in ('pydantic', 'pydantic_ai', 'anthropic', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_import_restores_the_thread_switch_interval():
    before = sys.getswitchinterval()
    during = await asyncio.wrap_future(load_in_background(sys.getswitchinterval))
    assert during < before
    assert sys.getswitchinterval() == before


async def test_cancelled_wait_for_an_import_does_not_affect_other_waiters():
    gate = threading.Event()
    loading = load_in_background(lambda: gate.wait(30))
    first, second = (asyncio.ensure_future(asyncio.wrap_future(loading)) for _ in range(2))
    first.cancel()
    gate.set()
    assert await second is True


async def test_failed_import_raises_for_every_waiter():
    def fail():
        raise ImportError("gone")

    with pytest.raises(ImportError, match="gone"):
        await asyncio.wrap_future(load_in_background(fail))


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_every_provider_exists_in_the_library(kind, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://example.invalid")
    monkeypatch.setenv("OPENAI_API_VERSION", "2026-01-01")
    try:
        model = provider_model(f"{kind}:some/model", ProviderOptions(api_key=KEY))
    except ModelError as missing:
        assert how_to_add(PROVIDERS[kind].extra) in str(missing)
        return
    if kind in ("vllm", "litellm"):
        model = provider_model(f"{kind}:some/model", ProviderOptions(base_url="http://127.0.0.1:9/v1"))
    try:
        await model.link()
    except ModelError as broken:  # parts of its library are installed as a dependency
        assert how_to_add(PROVIDERS[kind].extra) in str(broken)
    await model.close()


async def test_model_that_failed_to_load_can_be_closed():
    model = provider_model("deepseek:x", ProviderOptions(api_key=KEY))
    await model.close()
    broken = provider_model("vllm:x")
    with pytest.raises(ModelError, match="VLLM_BASE_URL"):
        await broken.link()
    await broken.close()
