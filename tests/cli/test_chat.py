"""`dragoman chat` without a terminal."""

import os
from pathlib import Path

import pytest

from dragoman.testing import steps
from tests.commands import dragoman, scripted


def chat(*turns, lines, options=()):
    agent = scripted(*turns)
    return run([*options, "--", *agent], lines)


def run(arguments, lines=""):
    return dragoman("chat", *arguments, input=lines)


def test_every_line_is_a_prompt_and_answers_are_unchanged():
    done = chat([steps.Say("**one** "), steps.Say("two")], [steps.Say("three\n")], lines="a\n\nb\n")
    assert (done.stdout, done.stderr, done.returncode) == ("**one** two\nthree\n", "", 0)


@pytest.mark.parametrize("word", [":quit", ":q", "exit", " quit "])
def test_quit_word_ends_the_chat(word):
    done = chat([steps.Say("once\n")], lines=f"a\n{word}\nb\n")
    assert done.stdout == "once\n"


def test_no_control_character_of_the_agent_is_printed():
    evil = [steps.Say("a\x1b[3"), steps.Say("1mb\x1b]0;t\x07c\x08\u202e\n"), steps.AskPermission(title="rm \x1b[8m/")]
    done = chat(evil, lines="go\n")
    assert done.stdout == "abc\noutcome: selected no\n"
    assert "\x1b" not in done.stderr


def test_permission_is_denied_without_a_terminal():
    done = chat([steps.AskPermission(title="rm -rf /")], lines="go\n")
    assert done.stdout == "outcome: selected no\n"
    assert "[denied, because no user can be asked: rm -rf /]" in done.stderr


def test_other_stop_reasons_are_printed_next_to_the_answer():
    done = chat([steps.Say("so far\n"), steps.Stop("max_tokens")], lines="go\n")
    assert (done.stdout, done.stderr, done.returncode) == ("so far\n", "[max_tokens]\n", 0)


def test_agent_that_dies_is_reported_with_its_last_output():
    done = chat([steps.Say("so far"), steps.Exit(7, "out of memory")], lines="go\n")
    assert done.returncode == 1
    assert done.stdout == "so far\n"
    assert "exited with code 7" in done.stderr
    assert "out of memory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["no-such-agent"], ["true"], ["sh", "-c", "echo no agent; exit 3"]])
def test_program_that_is_not_an_agent_is_reported(command):
    done = run(["--", *command])
    assert done.returncode == 1
    assert done.stderr.startswith("dragoman chat: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--"], ["--cwd", "/no/such/directory"], ["--session", "x", "--continue"], ["--agent", "f", "--", "a"]],
)
def test_invalid_command_line_is_a_usage_error(arguments):
    done = run(arguments)
    assert done.returncode == 2
    assert "usage: dragoman chat" in done.stderr


def test_our_own_agent_answers_and_continues_later(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("- - text: hello\n")
    model = ["--model", f"script:{script}", "--cwd", str(tmp_path)]
    assert run(model, "a\n").stdout == "hello\n"
    assert run([*model, "--continue"], "b\n").stdout == "hello\n"
    [log] = Path(os.environ["DRAGOMAN_HOME"]).glob("projects/*/*.jsonl")
    assert '"messages":4' in log.read_text()


def test_continue_without_a_session_explains_what_to_do(tmp_path):
    done = run(["--continue", "--cwd", str(tmp_path)], "a\n")
    assert done.returncode == 2
    assert "leave out --continue" in done.stderr


def test_missing_capability_is_named():
    done = chat([steps.Say("x")], lines="a\n", options=["--session", "old"])
    assert done.returncode == 2
    assert "cannot open earlier sessions, only new ones" in done.stderr


def test_dumb_terminal_is_treated_as_no_terminal():
    agent = scripted([steps.Say("**plain**")])
    environment = {**os.environ, "TERM": "dumb"}
    done = dragoman("chat", "--", *agent, input="a\n", env=environment)
    assert done.stdout == "**plain**\n"
