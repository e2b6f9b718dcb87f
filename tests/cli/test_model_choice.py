"""`chat` and `run` offer what is on the machine. A model can be connected in a chat, and the choice is stored."""

import json
import os
import sys
from contextlib import closing

import pytest

from dragoman.assistant.preferences import ChosenModel, PreferenceFile, Preferences
from dragoman.cli.chat.view import MARK
from dragoman.loop_thread import LoopThread
from tests.assistant.models.loopback import Chat, Refusal, loopback
from tests.cli.terminal import Terminal
from tests.commands import DRAGOMAN, scripted

KEY = "sk-canary-0c9ad1"
CHAT = Chat()

pytestmark = pytest.mark.usefixtures("no_keys")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Create a home and a working directory, with no agent on PATH."""
    work, programs = tmp_path / "work", tmp_path / "programs"
    for folder in (work, programs):
        folder.mkdir()
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin:/bin")
    monkeypatch.chdir(work)
    return tmp_path / "home", programs


@pytest.fixture
def server():
    """Run a model server on this machine, in a thread."""
    thread = LoopThread("server")
    made, leave = thread.enter(loopback(Refusal(401, KEY), CHAT.reply(("text", "I am a test."))))
    yield made
    leave()
    thread.stop()


def add_agent(programs):
    """Put our agent on PATH under another name."""
    program = programs / "opencode"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -m dragoman agent --model guide\n")
    program.chmod(0o755)


def start(*arguments):
    return closing(Terminal([*DRAGOMAN, *arguments], columns=160))


def leave(terminal):
    """End a chat once it waits for a message."""
    terminal.expect(MARK)
    terminal.press_until("\x04", "\n")
    assert terminal.end() == 0


def test_chat_with_guide_connects_a_model_for_the_open_session(place, server):
    home, _ = place
    with start("chat") as terminal:
        terminal.expect("No language model is connected")
        terminal.expect("Try: List the files here")
        terminal.expect(":connect sets up a language model")
        for outcome in ("Not connected: the server at", "openai:gpt-test answers: I am a test."):
            terminal.press(":connect\n")
            terminal.expect("a provider with an API key")
            terminal.press("2\n")
            terminal.expect("Address")
            terminal.press(f"{server.url}\n")
            terminal.expect("Model [")
            terminal.press("gpt-test\n")
            terminal.expect("(hidden)")
            terminal.wait_until_idle()
            terminal.press(f"{KEY}\n")
            terminal.expect(outcome)
        terminal.press("hello\n")
        terminal.expect("I am a test.")
        leave(terminal)
        assert KEY not in terminal.seen
    assert json.loads((home / "keys.json").read_text()) == {f"{server.url}/v1": KEY}
    assert KEY not in (home / "chat-history").read_text()
    assert PreferenceFile(home).read() == Preferences(ChosenModel("openai:gpt-test", f"{server.url}/v1"))


def test_chat_offers_models_once_and_remembers_guide(place):
    home, programs = place
    add_agent(programs)
    with start("chat") as terminal:
        terminal.expect("1  OpenCode, another agent")
        terminal.expect("Enter to keep guide")
        terminal.press("\n")
        terminal.expect(":help lists the commands")
        leave(terminal)
    assert PreferenceFile(home).read() == Preferences(ChosenModel("guide"))
    with start("chat") as terminal:
        terminal.expect(":help lists the commands")
        assert "Found on this machine" not in terminal.seen
        leave(terminal)


@pytest.mark.extended
def test_run_offers_an_agent_and_uses_it_again(place):
    home, programs = place
    add_agent(programs)
    with start("run", "who are you?") as terminal:
        terminal.expect("1  OpenCode, another agent")
        terminal.expect("Enter to keep guide")
        terminal.press("1\n")
        terminal.expect("I am **guide**")
        assert terminal.end() == 0
    assert PreferenceFile(home).read() == Preferences(agent="opencode")
    (programs / "opencode").write_text("#!/bin/sh\nexit 7\n")
    with start("run", "who are you?") as terminal:
        assert terminal.end() != 0
        assert "opencode" in terminal.seen, "the chosen agent is used again"


@pytest.mark.extended
def test_chat_continues_with_the_agent_chosen_by_connect(place):
    home, programs = place
    PreferenceFile(home).choose_model(ChosenModel("guide"))
    add_agent(programs)
    with start("chat") as terminal:
        terminal.expect(":help lists the commands")
        terminal.press(":connect\n")
        terminal.expect("1  OpenCode, another agent")
        terminal.expect("Enter to change nothing")
        terminal.press("1\n")
        terminal.expect(":help lists the commands")
        leave(terminal)
    assert PreferenceFile(home).read().agent == "opencode"


def test_foreign_agent_shows_its_own_login(place):
    with start("chat", "--", *scripted()) as terminal:
        terminal.expect(":help lists the commands")
        terminal.press(":connect\n")
        terminal.expect("cannot connect a model here")
