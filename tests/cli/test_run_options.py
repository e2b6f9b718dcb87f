"""`dragoman run --mode --model --option`: the options of any agent, in both versions of the protocol."""

import json
import sys
from pathlib import Path

import pytest

from tests.commands import dragoman, scripted

AGENT = str(Path(__file__).parent.parent / "peers" / "options_agent.py")


def run(options, agent, **settings):
    return dragoman("run", "go", *options, "--", *agent, **settings)


def offering(*options, version="1"):
    return [sys.executable, AGENT, version, *options]


EVERYTHING = ("mode", "model", "effort", "web")


@pytest.mark.parametrize("version", ["1", "2"])
def test_run_sets_the_model_then_the_mode_then_the_options(version):
    given = ["--option", "web=yes", "--mode", "code", "--option", "effort=High effort", "--model", "sonnet"]
    done = run(given, offering(*EVERYTHING, version=version))
    assert (done.stderr, done.returncode) == ("", 0)
    assert json.loads(done.stdout) == [["model", "sonnet"], ["mode", "code"], ["web", True], ["effort", "high"]]


@pytest.mark.parametrize("given", [["--mode", "code"], ["--option", "mode=code"]], ids=" ".join)
def test_run_sets_a_mode_without_config_options(given):
    assert json.loads(run(given, offering("modes")).stdout) == [["modes", "code"]]


def test_run_sets_only_named_options():
    assert json.loads(run([], offering("modes", *EVERYTHING)).stdout) == []


def test_run_passes_on_an_unlisted_model():
    assert json.loads(run(["--model", "opus"], offering("model")).stdout) == [["model", "opus"]]


@pytest.mark.parametrize("version", ["1", "2"])
def test_refused_model_is_reported_with_the_offered_ones(version):
    done = run(["--model", "gpt"], offering("model", version=version))
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr == (
        "[model is one of: haiku, sonnet]\ndragoman run: the agent answered with an error: this account has no gpt\n"
    )


@pytest.mark.parametrize(
    ("given", "agent", "words"),
    [
        (["--mode", "plan"], offering("modes"), "the agent has no mode 'plan'; expected one of ask, code"),
        (["--mode", "plan"], offering("mode", version="2"), "the agent has no mode 'plan'; expected one of ask, code"),
        (["--mode", "code"], offering("effort", "web"), "the agent has no option 'mode'; expected one of effort, web"),
        (["--model", "x"], offering("modes"), "the agent has no option 'model'; expected one of mode"),
        (["--model", "x"], scripted([]), "the agent has no option 'model'; it offers none"),
        (["--option", "effort=none"], offering("effort"), "the agent has no effort 'none'; expected one of low, high"),
        (["--option", "web=5"], offering("web"), "the agent has no web '5'; expected one of on, off"),
        (["--option", "zzz=1"], offering("effort"), "the agent has no option 'zzz'; expected one of effort"),
    ],
)
def test_unknown_name_or_value_lists_the_agents_offers(given, agent, words):
    done = run(given, agent)
    assert (done.stdout, done.stderr, done.returncode) == ("", f"dragoman run: {words}\n", 2)


def test_our_own_agent_has_a_mode():
    done = dragoman("run", "hi", "--mode", "nonsense", "--model", "guide")
    assert done.returncode == 2
    assert "the agent has no mode 'nonsense'; expected one of " in done.stderr
    assert dragoman("run", "hi", "--mode", "plan", "--model", "guide").returncode == 0


def test_ephemeral_session_is_deleted_after_a_wrong_option(tmp_path):
    done = dragoman("run", "hi", "--mode", "nonsense", "--ephemeral", cwd=tmp_path)
    assert done.returncode == 2
    assert dragoman("run", "hi", "--continue", cwd=tmp_path).returncode == 2
