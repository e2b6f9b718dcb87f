"""`dragoman sessions` with a bridge, over its URL and in its home."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from dragoman.store import FileStore
from tests.bridge.guard.serving import serving
from tests.commands import dragoman, start_dragoman


def run(*arguments):
    return dragoman("sessions", *arguments)


def talk(served, tmp_path, *words, start=dragoman):
    """Run a turn with a bridge's agent, from a shell without the token, and return the session."""
    done = start("run", *words, "--url", served.acp, "--format", "json", cwd=tmp_path)
    return json.loads(done.stdout)["session_id"]


@pytest.fixture
def served_session(tmp_path):
    with serving(os.environ["DRAGOMAN_HOME"], agent=()) as served:
        yield served, talk(served, tmp_path, "hello")


def texts_of(home):
    """Return all stored texts of conversations in the home."""
    return "".join(path.read_text() for path in Path(home).rglob("*.jsonl"))


def test_session_open_at_a_bridge_is_deleted_by_it(served_session):
    served, session_id = served_session
    refused = run("title", session_id, "other")
    assert refused.returncode == 1
    assert re.search(r"is in use by process \d+ on \S+; close it there, or end that process, first", refused.stderr)
    assert f"dragoman sessions title {session_id} --url {served.acp}" in refused.stderr
    assert "{" not in refused.stderr
    [listed] = json.loads(run("list", "--format", "json", "--url", served.acp).stdout)
    assert (listed["session_id"], listed["meta"]["dragoman/origin"]) == (session_id, "run")
    done = run("delete", session_id[:8], "--yes")
    assert (done.returncode, done.stdout) == (0, f"Deleted hello ({session_id}), and its journal on the bridge.\n")
    assert texts_of(served.home) == ""
    for where in ([], ["--url", served.acp]):
        assert json.loads(run("list", "--format", "json", *where).stdout) == []


def test_sessions_are_deleted_with_their_journals_without_a_bridge(served_session, tmp_path):
    served, session_id = served_session
    other_id = talk(served, tmp_path, "hello again")
    assert served.stop() == 0
    forgotten = served.home / "projects"
    for path in forgotten.rglob(f"*{other_id}*.jsonl"):
        path.unlink()  # the agent has lost it, and only the journal is left
    assert other_id in texts_of(served.home)
    done = run("delete", other_id[:8], "--yes")
    assert (done.returncode, done.stdout) == (0, f"Deleted hello again ({other_id}), and its journal on the bridge.\n")
    assert other_id not in texts_of(served.home)
    assert session_id in texts_of(served.home)
    done = run("delete", "--all", "--yes")
    assert (done.returncode, done.stdout) == (0, f"Deleted hello ({session_id}), and its journal on the bridge.\n")
    assert texts_of(served.home) == ""


async def test_session_open_in_another_process_is_not_reported_as_deleted(served_session, tmp_path):
    served, session_id = served_session
    other_id = talk(served, tmp_path, "hello again", start=start_dragoman)
    assert served.stop() == 0
    for path in (served.home / "projects").rglob(f"*{other_id}*.jsonl"):
        path.unlink()
    store = FileStore(served.home)
    log = await store.open(session_id)  # as an editor's agent has it
    before = texts_of(served.home / "bridge").count(session_id)
    done = start_dragoman("sessions", "delete", session_id, other_id, "--yes", "--format", "json")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert (result["deleted"], [each["session_id"] for each in result["failed"]]) == ([other_id], [session_id])
    assert before == texts_of(served.home / "bridge").count(session_id) > 0
    await log.close()
    await store.close()


def test_all_sessions_are_deleted_at_the_bridge_with_orphaned_journals(served_session, tmp_path):
    served, _ = served_session
    forgotten = talk(served, tmp_path, "hello again")
    assert dragoman("run", "hi", cwd=tmp_path).returncode == 0
    for path in (served.home / "projects").rglob(f"*{forgotten}*.jsonl"):
        path.unlink()
    done = run("delete", "--all", "--yes")
    assert (done.returncode, done.stdout) == (0, "Deleted 3 sessions, and 2 journals on the bridge.\n")
    assert texts_of(served.home) == ""
    assert json.loads(run("list", "--format", "json", "--url", served.acp).stdout) == []


def test_journals_of_another_agent_are_not_touched(tmp_path):
    home = Path(os.environ["DRAGOMAN_HOME"])
    with serving(home, "--agent-name", "other", agent=[sys.executable, "-m", "dragoman", "agent"]) as served:
        session_id = talk(served, tmp_path, "hello")
        assert served.stop() == 0
    for path in (home / "projects").rglob("*.jsonl"):
        path.unlink()
    done = run("delete", "--all", "--yes")
    assert done.stdout == "No session matches; nothing was deleted.\n"
    assert session_id in texts_of(home)


def test_session_of_a_bridge_is_shown_over_its_url(served_session, tmp_path):
    served, session_id = served_session
    shown = run("show", session_id, "--url", served.acp)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "hello" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--url", "http://127.0.0.1:1/acp", "--", "agent"], "use only one of them"),
        (["--token-file", "t"], "--token-file needs --url"),
    ],
)
def test_agent_is_either_started_or_at_a_url(arguments, words):
    done = run("list", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
