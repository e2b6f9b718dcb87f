"""`dragoman sessions` with our own agent and with agents that send arbitrary content."""

import asyncio
import base64
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from dragoman import __version__
from dragoman.client import connect
from tests.commands import dragoman, raw, scripted

SCRIPT = """
- - thought: "hm"
  - text: "one <b>two</b>"
- - tool: {name: read_file, arguments: {path: notes.txt}}
- - text: three
"""

EVIL = "</p></pre><script>alert('x')</script><img src=https://evil.example/x onerror=alert(1)>&amp;"
FULL = {"loadSession": True, "sessionCapabilities": {"list": {}, "fork": {}, "delete": {}}}
PICTURE = base64.b64encode(b"\x89PNG not really").decode()


def run(*arguments, command=None, **settings):
    return dragoman("sessions", *arguments, *(["--", *command] if command else []), **settings)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return the directory of our own agent's session."""
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def made(place, tmp_path_factory):
    """Create a session with two turns of our own agent, in a home that each test copies."""
    (place / "script.yaml").write_text(SCRIPT)
    (place / "notes.txt").write_text("A note.\n")
    home = tmp_path_factory.mktemp("home")

    async def talk():
        agent_command = [sys.executable, "-m", "dragoman", "agent", "--model", f"script:{place}/script.yaml"]
        async with connect(agent_command, env={"DRAGOMAN_HOME": str(home)}) as agent:
            session = await agent.new_session(place)
            await session.ask("hello")
            await session.ask("read the notes")
            return session.id

    return asyncio.run(talk()), home


@pytest.fixture
def session_id(made):
    found, home = made
    shutil.copytree(home, os.environ["DRAGOMAN_HOME"], dirs_exist_ok=True)
    return found


def listing(*pages):
    """Return the answers of an agent with these pages of sessions."""
    answers = []
    for number, page in enumerate(pages):
        following = {"nextCursor": str(number + 1)} if number + 1 < len(pages) else {}
        answers.append([{"result": {"sessions": page, **following}}])
    return {"session/list": answers}


def info(session_id, **more):
    return {"sessionId": session_id, "cwd": "/work", **more}


def replaying(*updates, **listed):
    """Return an agent that has one session, `s`, with these updates."""
    script = {
        "session/load": [[*({"update": update} for update in updates), {"result": {}}]],
        **listing([info("s", **listed)]),
    }
    return raw(script, capabilities=FULL)


def said(text, kind="agent_message_chunk"):
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


# ── list ────────────────────────────────────────────────────────────────────────────────────────


def test_list_is_a_table_with_short_ids(session_id, place):
    done = run()
    head, row = done.stdout.splitlines()
    assert head.split() == ["ID", "TITLE", "UPDATED", "DIRECTORY"]
    assert row.startswith(f"{session_id[:8]}  hello  ")
    assert row.endswith(str(place))
    assert (done.stderr, done.returncode) == ("", 0)


def test_all_pages_are_listed_with_distinct_ids():
    pages = listing([info("session-aa1", title="A")], [info("session-aa2")], [info("session-b")])
    rows = run(command=raw(pages, capabilities=FULL)).stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["session-aa1", "session-aa2", "session-b"]


def test_table_has_the_latest_sessions_up_to_a_limit():
    pages = listing(*([info(f"{page}{number:07}") for number in range(20)] for page in range(4)))
    done = run(command=raw(pages, capabilities=FULL))
    rows = done.stdout.splitlines()[1:]
    assert (len(rows), rows[-1].split()[0]) == (50, "20000009")
    assert done.stderr == "These are the latest 50; --limit N prints more, --cwd DIR fewer.\n"
    for limit, expected in (("80", 80), ("100", 80)):
        done = run("--limit", limit, command=raw(pages, capabilities=FULL))
        assert (len(done.stdout.splitlines()) - 1, done.stderr) == (expected, "")
    assert len(json.loads(run("--format", "json", command=raw(pages, capabilities=FULL)).stdout)) == 80
    assert len(json.loads(run("--format", "json", "--limit", "3", command=raw(pages, capabilities=FULL)).stdout)) == 3
    assert "expected a whole number above 0" in run("--limit", "0").stderr
    assert "--limit needs list" in run("show", "x", "--limit", "3").stderr


def test_list_of_a_directory_has_only_its_sessions(session_id, place):
    (place / "empty").mkdir(exist_ok=True)
    assert session_id in run("list", "--cwd", ".", "--format", "json", cwd=place).stdout
    done = run("--cwd", "empty", cwd=place)
    assert (done.stdout, done.returncode) == ("", 0)
    assert f"has no sessions in {place}/empty" in done.stderr


def test_list_is_available_as_json(session_id, place):
    [session] = json.loads(run("list", "--format", "json").stdout)
    assert (session["session_id"], session["cwd"], session["title"]) == (session_id, str(place), "hello")


def test_archived_session_is_listed_only_on_request(session_id):
    done = run("archive", session_id[:8])
    assert (done.stdout, done.returncode) == (f"Archived hello ({session_id}).\n", 0)
    assert run().stdout == ""
    assert "hello (archived)" in run("--archived").stdout
    assert "hello (archived)" in run("list", "--all").stdout
    assert "three" in run("show", session_id[:8]).stdout
    assert run("unarchive", session_id[:8]).stdout == f"hello ({session_id}) was unarchived.\n"
    assert "hello" in run().stdout
    assert "has no archived sessions" in run("--archived").stderr


def test_session_gets_another_title(session_id):
    done = run("title", session_id[:8], " The\tnotes ")
    assert (done.stdout, done.returncode) == (f"{session_id} is now 'The notes'.\n", 0)
    assert run().stdout.splitlines()[1].startswith(f"{session_id[:8]}  The notes  ")
    result = json.loads(run("title", session_id[:8], "Again", "--format", "json").stdout)
    assert result == {"session_id": session_id, "title": "Again"}
    empty = run("title", session_id[:8], " ")
    assert (empty.stdout, empty.returncode) == ("", 1)
    assert "the title is empty" in empty.stderr


@pytest.mark.parametrize(
    "arguments", [["title", "s"], ["show", "s", "t"], ["show", "s", "--all"], ["--all", "--archived"]]
)
def test_misplaced_title_and_archive_options_are_usage_errors(arguments):
    assert run(*arguments).returncode == 2


@pytest.mark.parametrize("arguments", [["archive", "s"], ["unarchive", "s"], ["title", "s", "t"], ["--archived"]])
def test_agent_without_titles_and_archives_is_not_asked(arguments):
    done = run(*arguments, command=raw(listing([info("s")]), capabilities=FULL))
    assert (done.stdout, done.returncode) == ("", 2)
    assert "sessionCapabilities" in done.stderr


def test_agent_without_an_archive_lists_all_sessions():
    done = run("--all", command=raw(listing([info("s")]), capabilities=FULL))
    assert (len(done.stdout.splitlines()), done.returncode) == (2, 0)


def test_title_cannot_move_the_cursor_or_break_the_table():
    done = run(command=raw(listing([info("s", title="a\x1b[2Jb\nc\u202e", updatedAt="never")]), capabilities=FULL))
    assert done.stdout.splitlines()[1:] == [r"s   a\x1b[2Jb c\u202e  never    /work"]


def test_long_title_is_cut_unless_long_is_given():
    command = raw(listing([info("s" * 40, title="x" * 100)]), capabilities=FULL)
    assert "x" * 59 + "…  " in run(command=command).stdout
    assert "x" * 100 in run("--long", command=command).stdout
    assert "s" * 40 in run("--long", command=command).stdout


# ── missing abilities of the agent ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list"], "list its sessions"),
        (["show", "x"], "open earlier sessions, only new ones"),
        (["load", "x"], "open earlier sessions, only new ones"),
        (["export", "x"], "open earlier sessions, only new ones"),
        (["fork", "x"], "copy a session"),
        (["delete", "x", "--yes"], "delete a session"),
    ],
)
def test_missing_ability_of_the_agent_is_named(arguments, words):
    done = run(*arguments, command=scripted())
    assert done.returncode == 2
    assert done.stderr == f"dragoman sessions: dragoman-scripted-agent {__version__} cannot {words}\n"


def test_agent_without_a_list_gets_the_id_unchanged(tmp_path):
    command = raw({"session/load": [[{"update": said("here")}, {"result": {}}]]}, capabilities={"loadSession": True})
    done = run("show", "s", command=command, cwd=tmp_path)
    assert "here" in done.stdout
    assert f"Directory: {tmp_path}".replace("_", "\\_") in done.stdout


# ── one session ─────────────────────────────────────────────────────────────────────────────────


def test_show_prints_the_conversation(session_id):
    shown = run("show", session_id[:8]).stdout
    parts = ["# hello", "## User\n\nhello", "> hm", "one <b>two</b>", "Read notes.txt (completed)", "A note.", "three"]
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)


def test_show_does_nothing_to_the_terminal():
    shown = run("show", "s", command=replaying(said("a\x1b]0;title\x07b\x1b[31mc\x9b1md\u202e"))).stdout
    assert "abcd" in shown
    assert not set("\x1b\x9b\u202e") & set(shown)


def test_load_prints_a_summary(session_id, place):
    loaded = json.loads(run("load", session_id, "--format", "json").stdout)
    assert (loaded["title"], loaded["cwd"], loaded["tool_calls"]) == ("hello", str(place), 1)
    assert "tool_calls: 1" in run("load", session_id).stdout


def test_fork_is_a_separate_session(session_id):
    copy = run("fork", session_id[:8]).stdout.strip()
    assert copy != session_id
    assert "three" in run("show", copy).stdout
    assert len(json.loads(run("--format", "json").stdout)) == 2


def test_fork_opens_a_session_that_must_be_in_memory():
    refusal = {"error": {"code": -32002, "message": "abc is not in memory"}}
    script = {**listing([info("abc")]), "session/fork": [[refusal], [{"result": {"sessionId": "copy"}}]]}
    assert run("fork", "abc", command=raw(script, capabilities=FULL)).stdout.strip() == "copy"
    lost = {**script, "session/load": [[{"error": {"code": -32603, "message": "the disk is gone"}}]]}
    assert "abc is not in memory" in run("fork", "abc", command=raw(lost, capabilities=FULL)).stderr


def test_ambiguous_prefix_lists_the_sessions():
    done = run("show", "ab", command=raw(listing([info("abc"), info("abd")]), capabilities=FULL))
    assert done.returncode == 2
    assert "several sessions begin with 'ab': abc, abd; write more of the id" in done.stderr


def test_complete_id_wins_over_longer_ones():
    script = {**listing([info("abc"), info("ab")]), "session/load": [[{"result": {}}]]}
    assert (
        json.loads(run("load", "ab", "--format", "json", command=raw(script, capabilities=FULL)).stdout)["session_id"]
        == "ab"
    )


def test_missing_session_is_reported(session_id):
    done = run("show", "nowhere")
    assert done.returncode == 2
    assert done.stderr == ("dragoman sessions: there is no session nowhere; run `dragoman sessions` to list them\n")


@pytest.mark.parametrize(
    "arguments",
    [["show"], ["list", "x"], ["open", "x"], ["show", "x", "--format", "html"], ["show", "x", "y"], ["list", "--"]],
)
def test_invalid_command_line_is_a_usage_error(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: dragoman sessions" in done.stderr


# ── delete ──────────────────────────────────────────────────────────────────────────────────────


def test_delete_without_a_terminal_is_refused(session_id):
    done = run("delete", session_id)
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert session_id in run("--format", "json").stdout


def test_delete_of_an_unknown_session_fails_before_asking(session_id):
    done = run("delete", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert "lists no session 'nowhere'; see dragoman sessions list --all" in done.stderr
    assert "cannot ask for confirmation" not in done.stderr


def test_delete_with_yes_deletes(session_id):
    assert run("delete", session_id[:8], "--yes").stdout == f"Deleted hello ({session_id}).\n"
    assert json.loads(run("--format", "json").stdout) == []


@pytest.mark.parametrize(("answer", "left"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_delete_asks_at_a_terminal(answer, left, session_id):
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "dragoman", "sessions", "delete", session_id]
    with subprocess.Popen(line, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        question = b""
        while b"[y/N]" not in question:
            question += os.read(process.stderr.fileno(), 1024)
        assert f"Delete hello ({session_id}) permanently?".encode() in question
        os.write(ours, answer.encode())
        assert process.wait(30) == left
    os.close(ours)
    os.close(theirs)
    assert len(json.loads(run("--format", "json").stdout)) == left


@pytest.mark.parametrize(
    ("arguments", "deleted"),
    [
        (["new", "ol"], ["new", "old"]),
        (["--older-than", "30d"], ["old"]),
        (["--all"], ["new", "old", "archived", "undated"]),
    ],
)
def test_several_sessions_are_deleted_by_id_age_or_all(arguments, deleted):
    now = datetime.now(UTC)
    times = {"new": now - timedelta(days=29), "old": now - timedelta(days=31), "archived": now}
    sessions = [info(name, updatedAt=time.isoformat(), archived=name == "archived") for name, time in times.items()]
    answers = listing([*sessions, info("undated")])
    answers["session/delete"] = [[{"result": {}}] for _ in deleted]
    done = run("delete", *arguments, "--yes", "--format", "json", command=raw(answers, capabilities=FULL))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"deleted": deleted, "failed": []})


def test_failed_deletion_does_not_stop_the_others(tmp_path):
    answers = listing([info("one", title="First"), info("two")])
    refusal = {"error": {"code": -32603, "message": "Internal error: the disk is full"}}
    answers["session/delete"] = [[refusal], [{"result": {}}]]
    done = run("delete", "--all", "--yes", command=raw(answers, capabilities=FULL))
    assert (done.returncode, done.stdout) == (1, "Deleted two.\n")
    assert "First (one) was not deleted" in done.stderr
    assert "the disk is full" in done.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["x", "--all"], ["--all", "--older-than", "3d"], ["--older-than", "soon"], ["x", "--archived"]]
)
def test_delete_accepts_one_way_to_choose(arguments):
    done = run("delete", "--yes", *arguments)
    assert done.returncode == 2
    assert "usage: dragoman sessions" in done.stderr


def test_run_session_is_marked_and_an_ephemeral_one_is_gone(tmp_path):
    (tmp_path / "script.yaml").write_text("- - text: Hello.\n")
    model = ["--model", f"script:{tmp_path}/script.yaml"]
    assert dragoman("run", "hi", *model, cwd=tmp_path).stdout == "Hello.\n"
    assert "hi (run)" in run("list").stdout
    [kept] = json.loads(run("--format", "json").stdout)
    assert kept["meta"]["dragoman/origin"] == "run"
    gone = dragoman("run", "hi", *model, "--ephemeral", "--format", "json", cwd=tmp_path)
    assert (gone.returncode, json.loads(gone.stdout)["text"]) == (0, "Hello.")
    assert json.loads(run("--format", "json").stdout) == [kept]
    assert run("show", json.loads(gone.stdout)["session_id"]).returncode == 2


def test_ephemeral_run_is_refused_if_the_agent_cannot_delete(tmp_path):
    done = dragoman("run", "hi", "--ephemeral", "--", *raw({}))
    assert done.returncode == 2
    assert "delete a session" in done.stderr
    again = dragoman("run", "hi", "--ephemeral", "--continue")
    assert (again.returncode, "new session" in again.stderr) == (2, True)


# ── export ──────────────────────────────────────────────────────────────────────────────────────


def test_json_has_every_update(session_id, tmp_path):
    done = run("export", session_id, "--format", "json", "--output", "out.json", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("", "Wrote out.json.\n")
    exported = json.loads((tmp_path / "out.json").read_text())
    assert exported["session"]["session_id"] == session_id
    kinds = [update["sessionUpdate"] for update in exported["updates"]]
    assert kinds[0] == "user_message_chunk"
    assert {"agent_thought_chunk", "agent_message_chunk", "tool_call", "tool_call_update"} <= set(kinds)


def test_json_keeps_unknown_updates():
    command = replaying({"sessionUpdate": "weather", "sky": "grey"})
    exported = json.loads(run("export", "s", "--format", "json", command=command).stdout)
    assert exported["updates"] == [{"sessionUpdate": "weather", "sky": "grey"}]


def test_markdown_fences_cannot_be_broken_from_inside():
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T *x*", "status": "completed"}
    call["content"] = [{"type": "content", "content": {"type": "text", "text": "a\n````\nb"}}]
    text = run("export", "s", command=replaying(said("```py\nopen"), call)).stdout
    assert "```py\nopen\n```\n\n### Tool: T \\*x\\* (completed)" in text
    assert "`````\na\n````\nb\n`````" in text


def test_unwritable_file_is_reported(session_id, tmp_path):
    done = run("export", session_id, "--output", str(tmp_path / "no/such/file"))
    assert done.returncode == 1
    assert "cannot be written: No such file or directory" in done.stderr


class Page(HTMLParser):
    """Collects the elements that a browser would see in a page."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    call = {"sessionUpdate": "tool_call", "toolCallId": EVIL, "title": EVIL, "rawInput": {EVIL: EVIL}}
    call["locations"] = [{"path": EVIL}]
    call["content"] = [
        {"type": "content", "content": {"type": "text", "text": EVIL}},
        {"type": "diff", "path": EVIL, "oldText": EVIL, "newText": f"{EVIL}2"},
        {"type": "terminal", "terminalId": EVIL},
    ]
    blocks = [
        {"type": "image", "mimeType": "image/png", "data": PICTURE},
        {"type": "image", "mimeType": "image/svg+xml", "data": PICTURE},
        {"type": "image", "mimeType": "image/png", "data": f'"{EVIL}'},
        {"type": "resource_link", "name": EVIL, "uri": f"javascript:{EVIL}"},
        {"type": "resource", "resource": {"uri": EVIL, "text": EVIL}},
        {"type": EVIL},
    ]
    updates = [
        said(EVIL, "user_message_chunk"),
        said(EVIL, "agent_thought_chunk"),
        said(EVIL),
        call,
        *({"sessionUpdate": "agent_message_chunk", "content": block} for block in blocks),
        {"sessionUpdate": "plan", "entries": [{"content": EVIL, "priority": "low", "status": "pending"}]},
    ]
    command = replaying(*updates, title=EVIL, updatedAt=EVIL)
    done = run("export", "s", "--format", "html", command=command, env={**os.environ, "DRAGOMAN_HOME": str(home)})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_html_has_no_elements_or_attributes_from_the_agent(page):
    known = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "dl", "dt", "dd", "section", "p"}
    known |= {"details", "summary", "span", "pre", "ul", "li", "img", "ins", "del"}
    tags = Page(page).tags
    assert {tag for tag, _ in tags} == known
    attributes = {name for _, attributes in tags for name in attributes}
    assert attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "dir", "alt", "src"}


def test_html_shows_the_agents_output_as_text(page):
    assert Page(page).text.count("<script>alert('x')</script>") >= 12


def test_html_loads_no_external_resources(page):
    assert Page(page).all("img") == [{"alt": "a picture", "src": f"data:image/png;base64,{PICTURE}"}]
    [policy] = [meta["content"] for meta in Page(page).all("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "url(" not in page
    assert "@import" not in page


def test_html_follows_the_readers_dark_mode(page):
    assert re.search(r"@media \(prefers-color-scheme: dark\)", page)
