import asyncio
import os

import pytest

from dragoman.agent.turns.prepared_call import Action, TargetChangedError, ToolError
from dragoman.agent.workspace.workspace import MAX_FILE_BYTES
from dragoman.assistant.tools.edit_file import Edit, apply
from dragoman.assistant.tools.file_calls import WHOLE_DIFF_CHARS, make_diff
from dragoman.protocol import v1
from tests.assistant.tools.working import FILES, READS, Buffers, working
from tests.table import each_row


def refused(text, *edits):
    with pytest.raises(ToolError) as caught:
        apply(text, [Edit(*edit) for edit in edits])
    return str(caught.value)


# ── write_file ──────────────────────────────────────────────────────────────────────────────────────


async def test_new_file_is_created_with_its_parent_directories(tmp_path):
    async with working(tmp_path) as here:
        call = await here.prepare("write_file", path="a/b/c.txt", content="x\n")
        target = str(tmp_path / "a" / "b" / "c.txt")
        diff = v1.Diff(path=target, old_text=None, new_text="x\n")
        assert (call.title, call.kind, call.action) == ("Write a/b/c.txt", "edit", Action("write", target))
        assert (call.reads_only, call.inside, call.content) == (False, True, [diff])
        assert call.locations == [v1.ToolCallLocation(path=target)]
        assert not (tmp_path / "a").exists()
        outcome = await here.run(call)
        assert outcome.content == [diff]
        assert outcome.text == "created a/b/c.txt: 1 line"
        assert (tmp_path / "a" / "b" / "c.txt").read_text() == "x\n"


async def test_file_is_replaced_byte_for_byte_and_keeps_its_mode(tmp_path):
    path = tmp_path / "run.sh"
    path.write_bytes(b"old\r\n")
    path.chmod(0o755)
    async with working(tmp_path) as here:
        outcome = await here.call("write_file", path="run.sh", content="new\r\nü")
        assert outcome.content == [v1.Diff(path=str(path), old_text="old\r\n", new_text="new\r\nü")]
        assert path.read_bytes() == "new\r\nü".encode()
        assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("before", ["old", None])
async def test_file_changed_after_the_diff_is_not_touched(before, tmp_path):
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_text(before)
    async with working(tmp_path) as here:
        call = await here.prepare("write_file", path="a.txt", content="mine")
        path.write_text("theirs")
        with pytest.raises(TargetChangedError):
            await here.run(call)
        assert path.read_text() == "theirs"


async def test_file_removed_after_the_diff_counts_as_changed(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    async with working(tmp_path) as here:
        call = await here.prepare("write_file", path="a.txt", content="mine")
        (tmp_path / "a.txt").unlink()
        with pytest.raises(TargetChangedError):
            await here.run(call)
        assert not (tmp_path / "a.txt").exists()


async def test_path_redirected_after_the_diff_counts_as_changed(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("same")
    (tmp_path / "link").symlink_to("one")
    async with working(tmp_path) as here:
        call = await here.prepare("write_file", path="link/a.txt", content="mine")
        assert call.action == Action("write", str(tmp_path / "one" / "a.txt"))
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("two")
        with pytest.raises(TargetChangedError):
            await here.run(call)
        assert (tmp_path / "two" / "a.txt").read_text() == "same"


async def test_removed_session_directory_refuses_its_prepared_writes(tmp_path):
    for name in ("cwd", "more"):
        (tmp_path / name).mkdir()
    async with working(tmp_path / "cwd", tmp_path / "more") as here:
        call = await here.prepare("write_file", path=str(tmp_path / "more" / "a.txt"), content="x")
        here.workspace.set_directories([])
        with pytest.raises(TargetChangedError):
            await here.run(call)


@each_row("steps", [*range(10), 20, 40])
async def test_cancelled_write_is_either_done_or_not_begun(steps, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    new = "new" * 1_000_000
    async with working(tmp_path) as here:
        call = await here.prepare("write_file", path="a.txt", content=new)
        running = asyncio.create_task(here.run(call))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert path.read_text() in ("old", new)
        assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(("name", "words"), [("binary", "not UTF-8"), ("dir", "is a directory"), ("big", "the limit")])
async def test_undiffable_content_is_not_written(name, words, tmp_path):
    (tmp_path / "binary").write_bytes(b"\0")
    (tmp_path / "dir").mkdir()
    with (tmp_path / "big").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match=words):
            await here.prepare("write_file", path=name, content="x")


async def test_too_large_text_is_refused(tmp_path):
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match="write it in parts"):
            await here.prepare("write_file", path="a", content="x" * (MAX_FILE_BYTES + 1))


# ── edit_file ───────────────────────────────────────────────────────────────────────────────────────


async def test_edits_apply_in_order_and_report_their_lines(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("a = 1\nb = 2\nc = 3")
    async with working(tmp_path) as here:
        edits = [{"old": "b = 2", "new": "b = 2\nbb = 22"}, {"old": "bb = 22\nc = 3", "new": "c = 4"}]
        call = await here.prepare("edit_file", path="a.py", edits=edits)
        diff = v1.Diff(path=str(path), old_text="a = 1\nb = 2\nc = 3", new_text="a = 1\nb = 2\nc = 4")
        assert (call.title, call.kind, call.content) == ("Edit a.py", "edit", [diff])
        assert [location.line for location in call.locations] == [2, 3]
        assert call.action == Action("write", str(path))
        outcome = await here.run(call)
        assert (outcome.text, outcome.content) == ("edited a.py: 2 edits, at line 2, 3", [diff])
        assert path.read_text() == "a = 1\nb = 2\nc = 4"


async def test_edit_of_a_missing_file_is_refused(tmp_path):
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match="does not exist"):
            await here.prepare("edit_file", path="none.txt", edits=[{"old": "a", "new": "b"}])


async def test_edit_of_a_changed_file_is_not_made(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old and more")
    async with working(tmp_path) as here:
        call = await here.prepare("edit_file", path="a.txt", edits=[{"old": "old", "new": "new"}])
        path.write_text("old and less")
        with pytest.raises(TargetChangedError):
            await here.run(call)
        assert path.read_text() == "old and less"


def test_repeated_old_is_refused_with_its_lines():
    said = refused("x\ny\nx\n", ("y", "z"), ("x", "z"))
    assert said.startswith("edit 2 of 2: old matches 2 times, on lines 1, 3; add lines around it")
    assert said.endswith("Nothing was changed")


def test_overlapping_matches_count_as_two():
    assert "matches 2 times" in refused("aaa", ("aa", "b"))


def test_only_the_first_of_many_matches_are_listed():
    assert "matches 1000 times, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …;" in refused("x\n" * 1000, ("x", "y"))


def test_missing_old_is_refused_with_a_white_space_hint():
    assert "old is not in the file; read the file again" in refused("abc", ("x", "y"))
    assert "line 2 differs only in white space" in refused("if x:\n\treturn  1\n", ("    return 1", "y"))
    assert "old is not in the file; read" in refused("abc", ("  ", "y"))


def test_edit_without_a_change_is_refused():
    assert "old and new are the same" in refused("abc", ("b", "b"))


def test_crlf_line_ends_are_kept():
    assert apply("a\r\nb\r\nc", [Edit("a\nb", "x\ny\nz")]) == ("x\r\ny\r\nz\r\nc", [1])
    assert apply("a\r\nb\r\n", [Edit("a\r\nb", "c\r\nd")]) == ("c\r\nd\r\n", [1])


def test_mixed_line_ends_are_matched_exactly():
    assert "is not in the file" in refused("a\r\nb\n", ("a\nb", "x"))
    assert apply("a\r\nb\nc\n", [Edit("b\nc", "x\ny")]) == ("a\r\nx\ny\n", [2])


def test_unicode_is_matched_exactly():
    assert apply("na\u00efve 🦊", [Edit("🦊", "🐺")]) == ("na\u00efve 🐺", [1])
    assert "is not in the file" in refused("nai\u0308ve", ("na\u00efve", "x"))


# ── diffs ───────────────────────────────────────────────────────────────────────────────────────────


def test_diff_of_a_large_file_has_only_the_changed_lines():
    lines = [f"line {number}\n" for number in range(WHOLE_DIFF_CHARS // 8)]
    new = [*lines[:1000], "changed\n", *lines[1002:]]
    diff = make_diff("/a", "".join(lines), "".join(new))
    assert diff.old_text == "".join(lines[997:1005])
    assert diff.new_text == "".join([*lines[997:1000], "changed\n", *lines[1002:1005]])


@pytest.mark.parametrize(("old", "new"), [("a\n" * 3, "a\n" * 5), ("a\n" * 5, "a\n" * 3), ("a\n", "b\n"), ("", "x")])
def test_diff_of_repeated_lines_keeps_additions_and_removals(old, new, monkeypatch):
    monkeypatch.setattr("dragoman.assistant.tools.file_calls.WHOLE_DIFF_CHARS", 0)
    diff = make_diff("/a", old, new)
    assert len(diff.new_text) - len(diff.old_text) == len(new) - len(old)
    assert diff.old_text != diff.new_text


# ── through the client ──────────────────────────────────────────────────────────────────────────────


async def test_edit_applies_to_unsaved_text_and_goes_to_the_client(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("saved")
    buffers = Buffers(**{str(path): "typed"})
    async with working(tmp_path, capabilities=FILES, set_up=buffers.set_up) as here:
        outcome = await here.call("edit_file", path="a.txt", edits=[{"old": "typed", "new": "edited"}])
        assert outcome.content == [v1.Diff(path=str(path), old_text="typed", new_text="edited")]
        assert buffers.written == {str(path): "edited"}
        assert path.read_text() == "saved"


async def test_text_typed_after_the_diff_is_not_overwritten(tmp_path):
    path = str(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("saved")
    buffers = Buffers(**{path: "typed"})
    async with working(tmp_path, capabilities=FILES, set_up=buffers.set_up) as here:
        call = await here.prepare("write_file", path="a.txt", content="mine")
        buffers.unsaved[path] = "typed more"
        with pytest.raises(TargetChangedError):
            await here.run(call)
        assert buffers.written == {}


async def test_new_file_is_created_by_the_client(tmp_path):
    buffers = Buffers()
    async with working(tmp_path, capabilities=FILES, set_up=buffers.set_up) as here:
        outcome = await here.call("write_file", path="new.txt", content="x")
        assert outcome.text.startswith("created")
        assert outcome.content == [v1.Diff(path=str(tmp_path / "new.txt"), old_text=None, new_text="x")]
        assert buffers.written == {str(tmp_path / "new.txt"): "x"}
        assert buffers.read == [], "the client was asked for a missing file"


async def test_new_file_that_exists_empty_when_written_is_still_new(tmp_path):
    buffers = Buffers()
    async with working(tmp_path, capabilities=FILES, set_up=buffers.set_up) as here:
        call = await here.prepare("write_file", path="new.txt", content="x")
        (tmp_path / "new.txt").touch()
        await here.run(call)
        assert buffers.written == {str(tmp_path / "new.txt"): "x"}


async def test_new_file_with_text_when_written_counts_as_changed(tmp_path):
    buffers = Buffers()
    async with working(tmp_path, capabilities=FILES, set_up=buffers.set_up) as here:
        call = await here.prepare("write_file", path="new.txt", content="x")
        (tmp_path / "new.txt").write_text("theirs")
        with pytest.raises(TargetChangedError):
            await here.run(call)
        assert buffers.written == {}


async def test_edit_applies_to_a_buffer_that_was_never_saved(tmp_path):
    buffers = Buffers(**{str(tmp_path / "new.txt"): "typed"})
    async with working(tmp_path, capabilities=FILES, set_up=buffers.set_up) as here:
        call = await here.prepare("edit_file", path="new.txt", edits=[{"old": "typed", "new": "edited"}])
        await here.run(call)
        assert buffers.written == {str(tmp_path / "new.txt"): "edited"}


async def test_client_with_empty_missing_files_is_asked_once(tmp_path):
    buffers = Buffers()
    buffers.missing_is_empty = True
    async with working(tmp_path, capabilities=FILES, set_up=buffers.set_up) as here:
        with pytest.raises(ToolError, match="does not exist"):
            await here.prepare("edit_file", path="none.txt", edits=[{"old": "a", "new": "b"}])
        assert buffers.read == [str(tmp_path / "none.txt")]


async def test_client_that_only_reads_leaves_writing_to_us(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("saved")
    buffers = Buffers(**{str(path): "typed"})
    async with working(tmp_path, capabilities=READS, set_up=buffers.set_up) as here:
        await here.call("edit_file", path="a.txt", edits=[{"old": "typed", "new": "edited"}])
        assert path.read_text() == "edited"


async def test_client_that_only_writes_gets_our_edit_of_the_disk(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("saved")
    buffers = Buffers()
    capabilities = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(write_text_file=True))
    async with working(tmp_path, capabilities=capabilities, set_up=buffers.set_up) as here:
        call = await here.prepare("edit_file", path="a.txt", edits=[{"old": "saved", "new": "edited"}])
        await here.run(call)
        assert buffers.written == {str(path): "edited"}
        assert buffers.read == []
        path.write_text("changed")
        with pytest.raises(TargetChangedError):
            await here.run(call)


async def test_client_that_cannot_write_is_quoted(tmp_path):
    capabilities = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(write_text_file=True))
    async with working(tmp_path, capabilities=capabilities) as here:
        with pytest.raises(ToolError, match=r"the client refused to write .*a\.txt: Method not found"):
            await here.call("write_file", path="a.txt", content="x")
