"""`dragoman login` reads a hidden key, `dragoman logout` deletes it, and the agent's command has `--login`."""

import json
import os
import signal
import subprocess
import sys

import pytest

from dragoman.assistant.keys import KeyStore
from tests import commands
from tests.commands import DRAGOMAN

KEY = "sk-canary-8e11b0"
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


pytestmark = pytest.mark.usefixtures("no_keys")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def dragoman(*arguments, **settings):
    done = commands.dragoman(*arguments, **settings)
    assert KEY not in done.stdout + done.stderr
    return done


def initialized(*arguments, **client):
    request = {**INITIALIZE, "params": {"protocolVersion": 1, "clientCapabilities": client}}
    done = dragoman("agent", *arguments, input=json.dumps(request) + "\n")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["result"]


class Terminal:
    """A command in a terminal, its output and its input."""

    def __init__(self, *command):
        self._ours, theirs = os.openpty()
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.shown = ""

    def wait_for(self, text):
        while text not in self.shown:
            assert self._read(), self.shown

    def type(self, text):
        os.write(self._ours, text.encode())

    def finish(self):
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait(30)

    def _read(self):
        try:
            read = os.read(self._ours, 4096).decode()
        except OSError:  # every process on the other side has ended
            return False
        self.shown += read
        return bool(read)


# ── login ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("piped", [KEY, f"{KEY}\n", f"  {KEY}\r\n"])
def test_key_can_be_piped_in(home, piped):
    done = dragoman("login", "anthropic", input=piped)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"The key for Anthropic is stored in {home}/keys.json" in done.stdout
    assert KeyStore(home).find("anthropic") == KEY


def test_typed_key_is_not_shown(home):
    terminal = Terminal(*DRAGOMAN, "login", "openai-chat")
    terminal.wait_for("Key for OpenAI (hidden): ")
    terminal.type(f"{KEY}\n")
    assert terminal.finish() == 0
    assert KEY not in terminal.shown
    assert KeyStore(home).find("openai") == KEY


def test_interrupted_login_changes_nothing(home):
    terminal = Terminal(*DRAGOMAN, "login", "anthropic")
    terminal.wait_for("(hidden): ")
    os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.finish() == 130
    assert "Nothing was changed." in terminal.shown
    assert "Traceback" not in terminal.shown
    assert not home.exists()


def test_end_of_input_at_the_terminal_changes_nothing(home):
    terminal = Terminal(*DRAGOMAN, "login", "anthropic")
    terminal.wait_for("(hidden): ")
    terminal.type("\x04")
    assert terminal.finish() == 1
    assert "no key was given; nothing was changed" in terminal.shown
    assert not home.exists()


@pytest.mark.parametrize(
    ("piped", "words"),
    [(b"", "no key was given"), (f"{KEY} and more".encode(), "one line"), (b"\xff\xfe", "no"), (b"x" * 9000, "8,192")],
)
def test_invalid_key_is_refused(home, piped, words):
    done = subprocess.run([*DRAGOMAN, "login", "anthropic"], input=piped, capture_output=True, timeout=30, check=False)
    assert done.returncode == 1
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert KEY.encode() not in done.stdout + done.stderr
    assert not home.exists()


def test_closed_input_is_no_key(home):
    done = commands.start_dragoman("login", "anthropic", preexec_fn=lambda: os.close(0))
    assert done.returncode == 1
    assert done.stderr == "dragoman login: no key was given; nothing was changed\n"
    assert not home.exists()


def test_default_provider_is_that_of_the_configured_model(home, tmp_path, monkeypatch):
    file = tmp_path / "agent.yaml"
    file.write_text("model: mistral:large\n")
    dragoman("login", "--model", "anthropic:claude", input="of-anthropic")
    dragoman("login", "--agent", str(file), input="of-mistral")
    (home / "dragoman.yaml").write_text("model: groq:llama\n")
    dragoman("login", input="of-groq")
    monkeypatch.setenv("DRAGOMAN_MODEL", "openai:gpt-5")
    (home / "dragoman.yaml").unlink()
    dragoman("login", input="of-openai")
    kept = json.loads((home / "keys.json").read_text())
    assert kept == {name: f"of-{name}" for name in ("anthropic", "mistral", "groq", "openai")}


@pytest.mark.parametrize("command", ["login", "logout"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no model is configured; name a provider: anthropic, openai, google"),
        (["nobody"], "there is no provider 'nobody' that needs a key; expected one of anthropic"),
        (["ollama"], "Ollama needs no key here; expected one of anthropic"),
        (["--model", "guide"], "there is no provider 'guide' that needs a key"),
    ],
)
def test_missing_provider_error_lists_them(home, command, arguments, words):
    done = dragoman(command, *arguments, input=KEY)
    assert done.returncode == 2
    assert f"dragoman {command}: {words}" in done.stderr
    assert "openai-chat" not in done.stderr
    assert not home.exists()


def test_settings_that_override_a_stored_key_are_mentioned(home, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://gateway.invalid")
    done = dragoman("login", "google", input=KEY)
    assert "GEMINI_API_KEY is set and takes precedence." in done.stdout
    assert "GOOGLE_GEMINI_BASE_URL is set: the stored key is not sent to that address." in done.stdout
    assert "GEMINI_API_KEY is still set and takes precedence." in dragoman("logout", "google").stdout


@pytest.mark.parametrize("command", ["login", "logout"])
def test_unusable_key_file_is_reported_and_not_changed(home, command):
    KeyStore(home).save("openai", KEY)
    (home / "keys.json").chmod(0o644)
    done = dragoman(command, "anthropic", input="new")
    assert done.returncode == 1
    assert "other users may read or write it" in done.stderr
    assert json.loads((home / "keys.json").read_text()) == {"openai": KEY}


# ── logout ──────────────────────────────────────────────────────────────────────────────────────────


def test_key_is_deleted_once(home):
    KeyStore(home).save("anthropic", KEY)
    assert dragoman("logout", "anthropic").stdout == "The key for Anthropic was deleted.\n"
    assert KeyStore(home).find("anthropic") is None
    again = dragoman("logout", "anthropic")
    assert (again.returncode, again.stdout) == (0, "No key was stored for Anthropic.\n")


# ── from the agent ──────────────────────────────────────────────────────────────────────────────────


def test_terminal_method_of_the_agent_logs_in(home):
    command = ["agent", "--model", "anthropic:claude-opus-5"]
    result = initialized(*command[1:], auth={"terminal": True})
    [method] = [method for method in result["authMethods"] if method.get("type") == "terminal"]
    terminal = Terminal(*DRAGOMAN, *command, *method["args"])
    terminal.wait_for("Key for Anthropic")
    terminal.type(f"{KEY}\n")
    assert terminal.finish() == 0
    assert KeyStore(home).find("anthropic") == KEY


@pytest.mark.parametrize("way", ["option", "environment", "home", "file"])
def test_login_is_offered_however_the_model_is_configured(way, home, tmp_path, monkeypatch):
    home.mkdir()
    arguments = []
    if way == "option":
        arguments = ["--model", "anthropic:claude-opus-5"]
    elif way == "environment":
        monkeypatch.setenv("DRAGOMAN_MODEL", "anthropic:claude-opus-5")
    elif way == "home":
        (home / "dragoman.yaml").write_text("model: anthropic:claude-opus-5\n")
    else:
        (tmp_path / "a.yaml").write_text("model: {name: anthropic:claude-opus-5}\n")
        arguments = ["--agent", str(tmp_path / "a.yaml")]
    result = initialized(*arguments)
    assert [method["id"] for method in result["authMethods"]] == ["anthropic-key"]
    assert result["agentCapabilities"]["auth"] == {"status": {}, "logout": {}}


def test_invalid_agent_file_does_not_prevent_initialize(home):
    home.mkdir()
    (home / "dragoman.yaml").write_text("model: [\n")
    assert [method["id"] for method in initialized()["authMethods"]] == ["none"]


@pytest.mark.parametrize("model", [None, "guide", "ollama:qwen3"])
def test_login_method_is_offered_without_a_key_for_registries(home, model):
    result = initialized(*(["--model", model] if model else []))
    [method] = result["authMethods"]
    assert (method["id"], method.get("type", "agent")) == ("none", "agent")
    assert result["agentCapabilities"]["auth"] == {"status": {}}


PROBE = """
import sys
from dragoman.cli import main
code = main(["agent", *sys.argv[1:]])
watched = {"pathlib", "argparse", "dragoman.assistant.auth", "dragoman.assistant.keys", "dragoman.assistant.profile",
           "dragoman.assistant.models.providers", "pydantic_ai", "anthropic"}
print(*sorted(watched & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [
        ([], ""),
        (
            ["--model", "anthropic:claude-opus-5"],
            "argparse dragoman.assistant.auth dragoman.assistant.models.providers",
        ),
    ],
)
def test_initialize_is_answered_before_heavy_imports(home, arguments, imported):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        input=json.dumps(INITIALIZE) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr.strip() == imported
    [method] = json.loads(done.stdout)["result"]["authMethods"]
    assert method["id"] == ("anthropic-key" if arguments else "none")


def test_key_for_a_server_address_is_stored_and_deleted_under_it(home):
    done = dragoman("login", "http://127.0.0.1:1234", input=f"{KEY}\n")
    assert done.returncode == 0, done.stderr
    assert KeyStore(home).find("http://127.0.0.1:1234/v1") == KEY
    assert "deleted" in dragoman("logout", "http://127.0.0.1:1234/v1").stdout
    assert KeyStore(home).find("http://127.0.0.1:1234/v1") is None
    assert "leave these out" in dragoman("login", "http://a:b@host/v1", input=f"{KEY}\n").stderr
