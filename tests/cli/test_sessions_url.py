"""`dragoman sessions` of a bridge, over its URL and beside it."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.bridge.guard.serving import serving
from tests.commands import dragoman


def run(*arguments):
    return dragoman("sessions", *arguments)


@pytest.fixture
def served_session(tmp_path, monkeypatch):
    """Have a turn with the agent of a bridge, from a shell, and give the bridge and the session."""
    with serving(os.environ["DRAGOMAN_HOME"], agent=()) as served:
        monkeypatch.setenv("DRAGOMAN_TOKEN", served.token)
        line = [sys.executable, "-m", "dragoman", "run", "hello", "--url", served.acp, "--format", "json"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
        yield served, json.loads(done.stdout)["session_id"]


def test_a_session_that_a_bridge_has_open_is_deleted_over_its_url(served_session):
    served, session_id = served_session
    refused = run("delete", session_id, "--yes")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert re.search(r"is in use by process \d+ on \S+; close it there, or end that process, first", refused.stderr)
    assert f"dragoman sessions delete {session_id} --url http://127.0.0.1:8421/acp" in refused.stderr
    assert "{" not in refused.stderr
    assert json.loads(run("list", "--json", "--url", served.acp).stdout)[0]["sessionId"] == session_id
    done = run("delete", session_id[:8], "--yes", "--url", served.acp)
    assert (done.returncode, done.stdout) == (0, f"Deleted hello ({session_id}).\n")
    for where in ([], ["--url", served.acp]):
        assert json.loads(run("list", "--json", *where).stdout) == []


def test_a_session_that_a_bridge_had_open_is_deleted_without_it(served_session):
    served, session_id = served_session
    assert served.stop() == 0
    assert run("delete", session_id, "--yes").returncode == 0
    assert json.loads(run("list", "--json").stdout) == []


def test_a_session_of_a_bridge_is_shown_over_its_url(served_session, tmp_path):
    served, session_id = served_session
    shown = run("show", session_id, "--url", served.acp)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "hello" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--url", "http://127.0.0.1:1/acp", "--", "agent"], "leave one of them out"),
        (["--token-file", "t"], "--token-file is for --url"),
    ],
)
def test_an_agent_is_started_or_elsewhere_but_not_both(arguments, words):
    done = run("list", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
