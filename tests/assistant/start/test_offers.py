"""The available models and agents. Looking for them sends and starts nothing."""

import json

import pytest

from dragoman.assistant.keys import KeyStore
from dragoman.assistant.start.model_servers import NoModelServerError, check_address, find_local_servers, list_models
from dragoman.assistant.start.offers import SUGGESTED, find_offers, list_providers
from dragoman.installation import Installation
from tests.assistant.models.asking import KEY
from tests.assistant.models.loopback import Refusal, Stream, loopback
from tests.assistant.start.test_connecting import JsonAnswer

pytestmark = pytest.mark.usefixtures("no_keys")


def test_providers_with_a_key_come_first_without_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    KeyStore(tmp_path).save("deepseek", KEY)
    first, second, third, *_ = offers = list_providers(tmp_path)
    assert (first.id, first.variable, first.kept) == ("google", "GEMINI_API_KEY", False)
    assert (second.id, second.variable, second.kept) == ("deepseek", "", True)
    assert not third.variable
    assert not third.kept
    assert KEY not in repr(offers)


@pytest.mark.parametrize("restarts", [False, True])
def test_provider_with_a_missing_library_shows_the_install_command(tmp_path, monkeypatch, restarts):
    monkeypatch.setattr("dragoman.assistant.models.providers._is_installed", lambda package: package != "groq")
    prefix = tmp_path / ("archive-v0" if restarts else "venv") / "made"  # the former is uvx's layout
    found = Installation(prefix, "/opt/python", origin=None, has_pip=True)
    monkeypatch.setattr("dragoman.installation.find_installation", lambda: found)
    start, install = 'uvx --from "dragoman[groq]" dragoman', '/opt/python -m pip install "dragoman[groq]"'
    command = start if restarts else install
    offers = {offer.id: offer for offer in list_providers(tmp_path)}
    groq, openai = offers["groq"], offers["openai"]
    assert groq.problem.endswith(command)
    assert (groq.install, groq.restarts, groq.kept) == (command, restarts, False)
    assert (openai.problem, openai.install, openai.restarts) == ("", "", False)


def test_library_knows_every_suggested_model():
    from pydantic_ai.models import known_model_names

    known = set(known_model_names())
    assert [f"{kind}:{model}" for kind, model in SUGGESTED.items() if f"{kind}:{model}" not in known] == []


async def test_agent_on_path_is_offered(tmp_path, monkeypatch):
    program = tmp_path / "opencode"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    [agent] = (await find_offers(tmp_path)).agents
    assert (agent.name, agent.command) == ("opencode", (str(program), "acp"))


async def test_local_servers_are_found_by_their_model_list():
    models = {"data": [{"id": "qwen3:8b"}, {"id": "\u202eevil"}]}
    async with (
        loopback(JsonAnswer(models)) as good,
        loopback(JsonAnswer({"detail": "a web page"})) as other,
        loopback(Stream([b"data: x\n\n"], "hang")) as silent,
    ):
        ports = {int(each.url.rpartition(":")[2]): name for each, name in ((good, "A"), (other, "B"), (silent, "C"))}
        [server] = await find_local_servers({**ports, 1: "nobody"})
        assert (server.title, server.url, server.models) == ("A", f"{good.url}/v1", ("qwen3:8b",))
        [request] = good.requests
        assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("localhost:1234", "http://localhost:1234/v1"),
        (" http://box:11434/ ", "http://box:11434/v1"),
        ("https://host/api/v3/", "https://host/api/v3"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_typed_address_becomes_a_base_url(given, url):
    assert check_address(given) == url


async def test_server_that_needs_a_key_says_so_and_redirects_are_not_followed():
    redirect = Refusal(307, headers={"location": "http://elsewhere.invalid/"})
    async with loopback(Refusal(401), Refusal(401, KEY), redirect) as server:
        for key, words in ((None, "requires a key"), (KEY, "did not accept the key"), (KEY, "with status 307")):
            with pytest.raises(NoModelServerError, match=words) as caught:
                await list_models(server.url, key)
            assert KEY not in str(caught.value)
        assert json.dumps([request.path for request in server.requests]) == '["/models", "/models", "/models"]'
