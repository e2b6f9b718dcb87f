import os
import signal
import subprocess
import sys

import pytest

from dragoman.testing import dump_turns, steps

DRAGOMAN = [sys.executable, "-m", "dragoman"]


def run(*turns, prompt="go", options=()):
    agent = [sys.executable, "-m", "dragoman.testing", dump_turns(list(turns))]
    command = [*DRAGOMAN, "run", prompt, *options, "--", *agent]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_without_a_command_our_own_agent_answers():
    done = subprocess.run([*DRAGOMAN, "run", "hi"], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0
    assert "I am **guide**" in done.stdout
    assert done.stderr == ""


def test_the_answer_goes_to_stdout_and_ends_in_a_newline():
    done = run([steps.Think("hm"), steps.Say("one "), steps.Say("two")])
    assert (done.stdout, done.stderr, done.returncode) == ("one two\n", "", 0)


def test_the_answer_streams_as_it_comes():
    agent = [sys.executable, "-m", "dragoman.testing", dump_turns([[steps.Say("first\n"), steps.WaitForCancel()]])]
    with subprocess.Popen([*DRAGOMAN, "run", "go", "--", *agent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "first\n"
        assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(10) == 130


def test_permission_is_denied_because_nobody_was_asked():
    done = run([steps.AskPermission(title="rm -rf /")])
    assert done.stdout == "outcome: selected no\n"
    assert "[denied: rm -rf /]" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("reason", "code"), [("end_turn", 0), ("max_tokens", 3), ("max_turn_requests", 3), ("refusal", 4), ("cancelled", 5)]
)
def test_the_exit_code_tells_the_stop_reason(reason, code):
    assert run([steps.Stop(reason)]).returncode == code


def test_an_agent_that_dies_is_reported_with_its_exit_code_and_last_words():
    done = run([steps.Say("so far"), steps.Exit(7, "out of memory")])
    assert done.returncode == 1
    assert "so far" in done.stdout
    assert "exited with code 7" in done.stderr
    assert "out of memory" in done.stderr


def test_a_stop_reason_outside_the_protocol_is_reported():
    done = run([steps.Stop("bored")])
    assert done.returncode == 1
    assert "stopReason" in done.stderr
    assert "bored" in done.stderr


def test_an_error_answer_is_reported_with_its_data():
    done = run([steps.Fail(-32000, "log in first")])
    assert done.returncode == 1
    assert "Authentication required: log in first" in done.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-agent"], "no such command"),
        (["sh", "-c", "echo not an agent; exit 3"], "exited with code 3"),
        (["true"], "exited with code 0"),
    ],
)
def test_what_is_no_agent_is_reported(command, words):
    done = subprocess.run(
        [*DRAGOMAN, "run", "hi", "--", *command], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [[], ["hi", "--"], ["hi", "there"]])
def test_a_wrong_command_line_is_a_usage_error(arguments):
    done = subprocess.run([*DRAGOMAN, "run", *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "usage: dragoman run" in done.stderr
