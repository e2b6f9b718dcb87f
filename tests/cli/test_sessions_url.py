"""`dragoman sessions` of a bridge, over its URL and beside it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.store import FileStore
from tests.bridge.guard.serving import serving
from tests.commands import dragoman


def run(*arguments):
    return dragoman("sessions", *arguments)


def talk(served, tmp_path, *words):
    """Have a turn with the agent of a bridge, from a shell that knows no token, and give the session."""
    line = [sys.executable, "-m", "dragoman", "run", *words, "--url", served.acp, "--format", "json"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    return json.loads(done.stdout)["session_id"]


@pytest.fixture
def served_session(tmp_path):
    with serving(os.environ["DRAGOMAN_HOME"], agent=()) as served:
        yield served, talk(served, tmp_path, "hello")


def texts_of(home):
    """Return everything that the home has of conversations."""
    return "".join(path.read_text() for path in Path(home).rglob("*.jsonl"))


def test_a_session_that_a_bridge_has_open_is_deleted_by_it(served_session):
    served, session_id = served_session
    refused = run("title", session_id, "other")
    assert refused.returncode == 1
    assert re.search(r"is in use by process \d+ on \S+; close it there, or end that process, first", refused.stderr)
    assert f"dragoman sessions title {session_id} --url {served.acp}" in refused.stderr
    assert "{" not in refused.stderr
    [listed] = json.loads(run("list", "--json", "--url", served.acp).stdout)
    assert (listed["sessionId"], listed["_meta"]["dragoman/origin"]) == (session_id, "run")
    done = run("delete", session_id[:8], "--yes")
    assert (done.returncode, done.stdout) == (0, f"Deleted hello ({session_id}), and its journal at the bridge.\n")
    assert texts_of(served.home) == ""
    for where in ([], ["--url", served.acp]):
        assert json.loads(run("list", "--json", *where).stdout) == []


def test_sessions_are_deleted_with_their_journals_where_no_bridge_runs(served_session, tmp_path):
    served, session_id = served_session
    other_id = talk(served, tmp_path, "hello again")
    assert served.stop() == 0
    forgotten = served.home / "projects"
    for path in forgotten.rglob(f"*{other_id}*.jsonl"):
        path.unlink()  # the agent has forgotten it: only the journal is left
    assert other_id in texts_of(served.home)
    done = run("delete", other_id[:8], "--yes")
    assert (done.returncode, done.stdout) == (0, f"Deleted hello again ({other_id}), and its journal at the bridge.\n")
    assert other_id not in texts_of(served.home)
    assert session_id in texts_of(served.home)
    done = run("delete", "--all", "--yes")
    assert (done.returncode, done.stdout) == (0, f"Deleted hello ({session_id}), and its journal at the bridge.\n")
    assert texts_of(served.home) == ""


async def test_a_session_that_another_process_has_open_is_not_told_as_deleted(served_session, tmp_path):
    served, session_id = served_session
    other_id = talk(served, tmp_path, "hello again")
    assert served.stop() == 0
    for path in (served.home / "projects").rglob(f"*{other_id}*.jsonl"):
        path.unlink()
    store = FileStore(served.home)
    log = await store.open(session_id)  # as an editor's agent has it
    before = texts_of(served.home / "bridge").count(session_id)
    done = run("delete", session_id, other_id, "--yes", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["deleted"], [each["sessionId"] for each in told["failed"]]) == ([other_id], [session_id])
    assert before == texts_of(served.home / "bridge").count(session_id) > 0
    await log.close()
    await store.close()


def test_all_sessions_are_deleted_at_the_bridge_that_runs_also_those_that_the_agent_forgot(served_session, tmp_path):
    served, _ = served_session
    forgotten = talk(served, tmp_path, "hello again")
    assert dragoman("run", "hi", cwd=tmp_path).returncode == 0
    for path in (served.home / "projects").rglob(f"*{forgotten}*.jsonl"):
        path.unlink()
    done = run("delete", "--all", "--yes")
    assert (done.returncode, done.stdout) == (0, "Deleted 3 sessions, and 2 journals at the bridge.\n")
    assert texts_of(served.home) == ""
    assert json.loads(run("list", "--json", "--url", served.acp).stdout) == []


def test_journals_of_another_agent_are_left_alone(tmp_path):
    home = Path(os.environ["DRAGOMAN_HOME"])
    with serving(home, "--name", "other", agent=[sys.executable, "-m", "dragoman", "agent"]) as served:
        session_id = talk(served, tmp_path, "hello")
        assert served.stop() == 0
    for path in (home / "projects").rglob("*.jsonl"):
        path.unlink()
    done = run("delete", "--all", "--yes")
    assert done.stdout == "There is no such session; nothing was deleted.\n"
    assert session_id in texts_of(home)


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
