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
from dragoman.errors import MissingKey, ModelFailure, UnknownModel
from dragoman.installation import how_to_add
from dragoman.loading import load_in_background
from tests.assistant.models.asking import AT_ONCE, KEY, asked, parts_of, text_of
from tests.assistant.models.loopback import Anthropic, Chat, Google, Refusal, Responses, loopback

WIRES = [Chat(), Anthropic(), Responses(), Google()]
every_format = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)


pytestmark = pytest.mark.usefixtures("no_keys")


@pytest.mark.parametrize("name", ["nobody:gpt", "gpt-5", "openai:", ""])
def test_a_name_that_no_provider_has_is_refused(name):
    with pytest.raises(UnknownModel):
        provider_model(name)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic:claude-opus-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("google:gemini-3", "GOOGLE"),
    ],
)
async def test_a_missing_key_names_the_variable_to_set(name, variable):
    with pytest.raises(MissingKey, match=f"set {variable}"):
        await parts_of(provider_model(name))


def test_a_missing_library_says_what_to_install(monkeypatch):
    monkeypatch.setattr(providers, "find_spec", lambda package: None)
    with pytest.raises(ModelFailure, match=re.escape(how_to_add("groq"))):
        provider_model("groq:llama")


def test_an_unknown_thought_level_is_refused():
    with pytest.raises(ModelFailure, match="expected one of off, minimal"):
        provider_model("anthropic:claude-opus-5", ProviderOptions(thought_level="deep"))


async def test_a_key_comes_from_the_environment_where_none_is_given(monkeypatch):
    wire = Anthropic()
    async with loopback(wire.reply(("text", "Hi"))) as provider:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        model = provider_model(wire.model, ProviderOptions(retry=AT_ONCE))
        assert text_of(await parts_of(model)) == "Hi"
        await model.close()
    assert KEY in str(provider.requests[0].headers)


@every_format
async def test_a_key_from_the_environment_is_not_sent_to_an_address_of_ones_own(wire, monkeypatch):
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


async def test_a_host_that_is_not_known_is_said_as_that():
    url = "http://no-such-host.invalid"  # RFC 2606: no resolver knows it
    model = provider_model("ollama:qwen3", ProviderOptions(base_url=f"{url}/v1", retry=AT_ONCE))
    with pytest.raises(ModelFailure, match=f"{url}/v1 cannot be reached: the name of its host is not known here"):
        await parts_of(model)
    await model.close()


async def test_a_server_that_is_not_running_is_said_at_once():
    async with loopback() as provider:
        url = provider.url
    model = provider_model("ollama:qwen3", ProviderOptions(base_url=f"{url}/v1"))
    with pytest.raises(ModelFailure, match=f"nothing answers at {url}/v1; start the server"):
        await parts_of(model)
    await model.close()


@every_format
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_a_secret_shows_nowhere(wire, status, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    header = "canary-header-77aa01"
    echo = Refusal(status, f"Incorrect API key provided: {KEY}, with {header}", {"x-echo": "1"})
    async with asked(wire, echo, headers={"x-secret": header}) as (provider, model):
        with pytest.raises(ModelFailure) as caught:
            await parts_of(model)
    assert KEY in str(provider.requests[0].headers)
    options = ProviderOptions(api_key=KEY, headers={"x-secret": header})
    shown = [str(caught.value), repr(caught.value), repr(model), repr(options), caplog.text, *capfd.readouterr()]
    for place in shown:
        assert KEY not in place
        assert header not in place


async def test_the_words_of_a_provider_are_cut_and_made_harmless():
    wire = Chat()
    async with asked(wire, Refusal(400, "\x1b[31mbad\n\n" + "x" * 5000)) as (_, model):
        with pytest.raises(ModelFailure) as caught:
            await parts_of(model)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_address_is_shown_without_what_is_secret_in_it():
    assert shown_url("https://me:pass@host:8443/v1?key=1") == "https://host:8443/v1"
    assert shown_url("http://[bad") == "an address that is no URL"


@every_format
async def test_what_is_known_of_a_model_is_there_with_its_library(wire):
    async with asked(wire, wire.reply(("text", "Hi"))) as (_, model):
        await parts_of(model)
        assert "image" in model.takes
        assert model.context_size >= 32_768
        assert bool(model.thought_levels) == (wire.model != Chat.model)


async def test_the_context_of_a_known_model_is_known():
    wire = Anthropic()
    async with asked(wire, wire.reply(("text", "Hi"))) as (_, model):
        before = model.context_size
        await parts_of(model)
        assert model.context_size == 1_000_000 != before


async def test_a_context_size_that_was_given_counts():
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


async def test_the_interval_of_thread_switches_is_as_before_after_an_import():
    before = sys.getswitchinterval()
    during = await asyncio.wrap_future(load_in_background(sys.getswitchinterval))
    assert during < before
    assert sys.getswitchinterval() == before


async def test_waiting_for_an_import_can_be_cancelled_without_harm_to_the_others():
    gate = threading.Event()
    loading = load_in_background(lambda: gate.wait(30))
    first, second = (asyncio.ensure_future(asyncio.wrap_future(loading)) for _ in range(2))
    first.cancel()
    gate.set()
    assert await second is True


async def test_an_import_that_fails_tells_whoever_waits():
    def fail():
        raise ImportError("gone")

    with pytest.raises(ImportError, match="gone"):
        await asyncio.wrap_future(load_in_background(fail))


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_every_provider_is_one_that_the_library_has(kind, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://example.invalid")
    monkeypatch.setenv("OPENAI_API_VERSION", "2026-01-01")
    try:
        model = provider_model(f"{kind}:some/model", ProviderOptions(api_key=KEY))
    except ModelFailure as missing:
        assert how_to_add(PROVIDERS[kind].extra) in str(missing)
        return
    if kind in ("vllm", "litellm"):
        model = provider_model(f"{kind}:some/model", ProviderOptions(base_url="http://127.0.0.1:9/v1"))
    try:
        await model.link()
    except ModelFailure as broken:  # some of its library is here, as a dependency of something else
        assert how_to_add(PROVIDERS[kind].extra) in str(broken)
    await model.close()


async def test_a_model_that_could_not_be_made_can_be_closed():
    model = provider_model("deepseek:x", ProviderOptions(api_key=KEY))
    await model.close()
    broken = provider_model("vllm:x")
    with pytest.raises(ModelFailure, match="VLLM_BASE_URL"):
        await broken.link()
    await broken.close()
