"""The files of a session's directories: found by name, and reverted to the state before a change."""

import pytest

from tests.bridge.viewers import OPTIONS, join, serve


@pytest.fixture
def work(tmp_path):
    directory = tmp_path / "work"
    (directory / "src").mkdir(parents=True)
    (directory / "src" / "reader.py").write_text("one\ntwo\n")
    (directory / "secret.txt").write_text("x")
    (directory / ".gitignore").write_text("secret*\n")
    (directory / ".env").write_text("x")
    return directory


async def open_session(served, work, **params):
    one = await join(served, extensions=True)
    return one, await one.new(str(work), **params)


async def test_files_of_all_session_directories_are_offered(tmp_path, work):
    more = tmp_path / "more"
    more.mkdir()
    (more / "reader.txt").write_text("x")
    (work / "out").symlink_to(more)
    async with serve(tmp_path / "home", cwd=str(work)) as served:
        one, session = await open_session(served, work, additionalDirectories=[str(more)])
        answer = await one.ask("_dragoman/files", {"sessionId": session, "query": "read"})
        assert answer["result"] == {"files": ["src/reader.py", f"{more}/reader.txt"], "isWhole": True}
        answer = await one.ask("_dragoman/files", {"query": ""})
        assert answer["result"]["files"] == ["src/reader.py"]
        reader = await join(served, extensions=True, read_only=True)
        assert "read-only" in (await reader.ask("_dragoman/files", {"query": ""}))["error"]["message"]
        unknown = await one.ask("_dragoman/files", {"sessionId": "none", "query": ""})
        assert "not open here" in unknown["error"]["message"]


WHOLE = {"oldText": "one\ntwo\n", "newText": "one\nthree\n"}
PART = {"oldText": "three", "newText": "four"}
MADE = {"oldText": None, "newText": "new\n"}


@pytest.mark.parametrize(
    ("now", "changes", "before"),
    [
        ("one\nthree\n", [WHOLE], "one\ntwo\n"),
        ("one\nfour\n", [WHOLE, PART], "one\ntwo\n"),
        ("zero\nfour\nfive\n", [PART], "zero\nthree\nfive\n"),
        ("new\n", [MADE], None),
    ],
)
async def test_changes_are_undone_in_reverse_order(tmp_path, work, now, changes, before):
    path = work / "src" / "reader.py"
    path.write_text(now)
    path.chmod(0o755)
    async with serve(tmp_path / "home") as served:
        one, session = await open_session(served, work)
        answer = await one.ask("_dragoman/revert", {"sessionId": session, "path": str(path), "changes": changes})
        assert answer["result"] == {"exists": before is not None}
    assert (path.read_text() if path.exists() else None) == before
    assert before is None or path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("path", "now", "changes", "words"),
    [
        ("src/reader.py", "one\nthree\nmine\n", [MADE], "changed after the agent"),
        ("src/reader.py", "four four", [PART], "changed after the agent"),
        ("src/reader.py", "mine", [WHOLE], "changed after the agent"),
        ("src/gone.py", "", [WHOLE], "no longer exists"),
        ("../outside.txt", "one\nthree\n", [WHOLE], "outside"),
        ("link/outside.txt", "one\nthree\n", [WHOLE], "outside"),
        ("src/reader.py", "x", [], "changes"),
    ],
)
async def test_file_changed_since_is_not_reverted(tmp_path, work, path, now, changes, words):
    (tmp_path / "outside.txt").write_text("one\nthree\n")
    (work / "link").symlink_to(tmp_path)
    (work / "src" / "reader.py").write_text(now)
    async with serve(tmp_path / "home") as served:
        one, session = await open_session(served, work)
        answer = await one.ask("_dragoman/revert", {"sessionId": session, "path": path, "changes": changes})
        assert words in answer["error"]["message"]
    assert (work / "src" / "reader.py").read_text() == now
    assert (tmp_path / "outside.txt").read_text() == "one\nthree\n"


async def test_reader_or_running_turn_cannot_revert(tmp_path, work):
    async with serve(tmp_path / "home") as served:
        one, session = await open_session(served, work)
        turn = one.start_prompt(session, {"ask": OPTIONS})
        question = await one.asked()
        wanted = {"sessionId": session, "path": "src/reader.py", "changes": [{"oldText": "x", "newText": "one\ntwo\n"}]}
        assert "is working" in (await one.ask("_dragoman/revert", wanted))["error"]["message"]
        reader = await join(served, extensions=True, read_only=True)
        assert "read-only" in (await reader.ask("_dragoman/revert", wanted))["error"]["message"]
        one.choose(question)
        await one.answer(turn)
    assert (work / "src" / "reader.py").read_text() == "one\ntwo\n"
