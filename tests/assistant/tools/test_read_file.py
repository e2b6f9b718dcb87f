import asyncio
import os

import pytest

from dragoman.agent.turns.prepared_call import Action, TargetChangedError, ToolError
from dragoman.agent.workspace.workspace import MAX_FILE_BYTES
from dragoman.assistant.tools.read_file import MAX_CHARS, split_lines
from dragoman.protocol import v1
from tests.assistant.tools.working import READS, Buffers, text_of, working


async def test_file_is_returned_unchanged(tmp_path):
    (tmp_path / "a.txt").write_bytes("one\r\ntwö\n\u2028three".encode())
    async with working(tmp_path) as here:
        assert (await here.call("read_file", path="a.txt")).text == "one\r\ntwö\n\u2028three"


async def test_title_and_location_name_the_lines(tmp_path):
    (tmp_path / "a.txt").write_text("x\n" * 30)
    async with working(tmp_path) as here:
        call = await here.prepare("read_file", path="./a.txt", start_line=10, line_count=11)
        assert call.title == "Read a.txt (lines 10-20)"
        assert call.kind == "read"
        assert call.locations == [v1.ToolCallLocation(path=str(tmp_path / "a.txt"), line=10)]
        assert (call.reads_only, call.inside, call.action) == (True, True, None)
        assert (await here.prepare("read_file", path="a.txt")).title == "Read a.txt"
        assert (await here.prepare("read_file", path="a.txt", start_line=3)).title == "Read a.txt (from line 3)"
        assert (await here.prepare("read_file", path="a.txt", line_count=1)).title == "Read a.txt (line 1)"


async def test_partial_read_says_which_lines_it_has(tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\n3\n4\n5")
    async with working(tmp_path) as here:
        assert (await here.call("read_file", path="a.txt", start_line=2, line_count=2)).text == "2\n3\n[lines 2-3 of 5]"
        assert (await here.call("read_file", path="a.txt", start_line=5)).text == "5\n[lines 5-5 of 5]"
        assert (await here.call("read_file", path="a.txt", line_count=99)).text == "1\n2\n3\n4\n5"
        with pytest.raises(ToolError, match="has 5 lines, so line 6 does not exist"):
            await here.call("read_file", path="a.txt", start_line=6)


async def test_empty_file_is_reported_as_empty(tmp_path):
    (tmp_path / "a.txt").touch()
    async with working(tmp_path) as here:
        assert (await here.call("read_file", path="a.txt")).text == "[the file is empty]"


async def test_long_file_is_cut_at_a_line_and_can_be_continued(tmp_path):
    whole = "".join(f"line {number}\n" for number in range(1, 20_001))
    (tmp_path / "a.txt").write_text(whole)
    got, start = "", 1
    async with working(tmp_path) as here:
        while start:
            text = (await here.call("read_file", path="a.txt", start_line=start)).text
            assert len(text) < MAX_CHARS + 200
            body, _, note = text.rpartition("[")
            got += body
            start = int(note.split("start_line ")[1].split()[0]) if "start_line" in note else 0
    assert got == whole


async def test_too_long_line_is_cut_with_a_note(tmp_path):
    (tmp_path / "a.txt").write_text("x" * (MAX_CHARS + 5) + "\nnext\n")
    async with working(tmp_path) as here:
        text = (await here.call("read_file", path="a.txt")).text
        assert text.startswith("x" * MAX_CHARS + "\n[line 1 was cut")


@pytest.mark.parametrize(
    ("content", "words"), [(b"\x7fELF\0\0", "not UTF-8 text"), (b"caf\xe9", "not UTF-8 text"), (b"", "does not exist")]
)
async def test_file_that_is_not_text_is_refused(content, words, tmp_path):
    if content:
        (tmp_path / "a.bin").write_bytes(content)
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match=words):
            await here.call("read_file", path="a.bin")


async def test_too_large_file_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "big").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    for options in ({}, {"capabilities": READS, "set_up": (buffers := Buffers()).set_up}):
        async with working(tmp_path, **options) as here:
            with pytest.raises(ToolError, match="the limit of 8,388,608"):
                await here.call("read_file", path="big")
    assert buffers.read == []


async def test_directories_and_fifos_are_refused_without_blocking(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match="is a FIFO"):
            await here.call("read_file", path="fifo")
        with pytest.raises(ToolError, match="is a directory"):
            await here.call("read_file", path=".")


async def test_fence_in_the_text_does_not_close_the_outer_fence(tmp_path):
    (tmp_path / "a.md").write_text("````\ncode\n````\n")
    async with working(tmp_path) as here:
        outcome = await here.call("read_file", path="a.md")
        assert text_of(outcome.content) == "`````\n````\ncode\n````\n`````"


# ── through the client ──────────────────────────────────────────────────────────────────────────────


async def test_unsaved_text_is_read_from_the_client(tmp_path):
    (tmp_path / "a.txt").write_text("saved")
    buffers = Buffers(**{str(tmp_path / "a.txt"): "typed"})
    async with working(tmp_path, capabilities=READS, set_up=buffers.set_up) as here:
        assert (await here.call("read_file", path="a.txt")).text == "typed"
        assert buffers.read == [str(tmp_path / "a.txt")]


async def test_file_that_only_the_client_has_is_read_from_it(tmp_path):
    buffers = Buffers(**{str(tmp_path / "new.txt"): "typed"})
    async with working(tmp_path, capabilities=READS, set_up=buffers.set_up) as here:
        assert (await here.call("read_file", path="new.txt")).text == "typed"
        with pytest.raises(ToolError, match="does not exist"):
            await here.call("read_file", path="other.txt")


async def test_client_is_asked_for_the_path_it_named_despite_links(tmp_path):
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "deep" / "a.txt").write_text("x")
    (tmp_path / "cwd").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "link").symlink_to("deep")
    buffers = Buffers()
    async with working(tmp_path / "cwd", capabilities=READS, set_up=buffers.set_up) as here:
        await here.call("read_file", path="link/a.txt")
        assert buffers.read == [str(tmp_path / "cwd" / "deep" / "a.txt")]


async def test_client_error_is_quoted(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    async with working(tmp_path, capabilities=READS) as here:
        with pytest.raises(ToolError, match=r"the client could not read .*a\.txt: Method not found"):
            await here.call("read_file", path="a.txt")


async def test_binary_content_from_a_client_is_refused(tmp_path):
    (tmp_path / "a.txt").touch()
    buffers = Buffers(**{str(tmp_path / "a.txt"): "a\0b"})
    async with working(tmp_path, capabilities=READS, set_up=buffers.set_up) as here:
        with pytest.raises(ToolError, match="is binary"):
            await here.call("read_file", path="a.txt")


# ── outside ─────────────────────────────────────────────────────────────────────────────────────────


async def test_read_outside_is_refused_unless_asking_is_allowed(tmp_path):
    (tmp_path / "cwd").mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    async with working(tmp_path / "cwd") as here:
        with pytest.raises(ToolError, match="outside the session's directories"):
            await here.prepare("read_file", path="../secret.txt")
    async with working(tmp_path / "cwd", ask_outside_reads=True) as here:
        call = await here.prepare("read_file", path="../secret.txt")
        assert (call.inside, call.reads_only, call.action) == (False, False, Action("read", str(secret)))
        assert call.title == f"Read {secret}"
        assert (await here.run(call)).text == "secret"


async def test_link_redirected_after_approval_is_not_followed(tmp_path):
    (tmp_path / "cwd").mkdir()
    (tmp_path / "harmless").write_text("harmless")
    (tmp_path / "secret").write_text("secret")
    link = tmp_path / "cwd" / "link"
    link.symlink_to(tmp_path / "harmless")
    async with working(tmp_path / "cwd", ask_outside_reads=True) as here:
        call = await here.prepare("read_file", path="link")
        assert call.action == Action("read", str(tmp_path / "harmless"))
        link.unlink()
        link.symlink_to(tmp_path / "secret")
        with pytest.raises(TargetChangedError):
            await here.run(call)


async def test_directory_added_later_counts_as_inside(tmp_path):
    for name in ("cwd", "more"):
        (tmp_path / name).mkdir()
    (tmp_path / "more" / "a.txt").write_text("more")
    async with working(tmp_path / "cwd") as here:
        here.workspace.set_directories([str(tmp_path / "more")])
        assert (await here.call("read_file", path=str(tmp_path / "more" / "a.txt"))).text == "more"
        here.workspace.set_directories([])
        with pytest.raises(ToolError, match="outside"):
            await here.call("read_file", path=str(tmp_path / "more" / "a.txt"))


async def test_many_reads_run_in_parallel(tmp_path):
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text(str(number))
    async with working(tmp_path) as here:
        calls = [await here.prepare("read_file", path=f"{number}.txt") for number in range(50)]
        outcomes = await asyncio.gather(*(here.run(call) for call in calls), here.run(calls[0]))
        assert [outcome.text for outcome in outcomes] == [*map(str, range(50)), "0"]


def test_lines_end_only_at_newlines():
    assert split_lines("a\r\nb\x0cc\n\nd") == ["a\r\n", "b\x0cc\n", "\n", "d"]
    assert split_lines("") == []
