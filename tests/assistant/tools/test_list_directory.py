import os

import pytest

from dragoman.agent.turns.prepared_call import Action, ToolError
from dragoman.assistant.tools.list_directory import MAX_ENTRIES
from tests.assistant.tools.working import working


async def test_names_are_sorted_and_show_their_kind(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "b.txt").write_text("12345")
    (tmp_path / "a.txt").touch()
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "new\nline").touch()
    async with working(tmp_path) as here:
        call = await here.prepare("list_directory", path=".")
        assert (call.title, call.kind, call.reads_only) == ("List .", "read", True)
        lines = (await here.run(call)).text.split("\n")
        assert lines == ["a.txt  0 bytes", "b.txt  5 bytes", "fifo|", "link@", "'new\\nline'  0 bytes", "src/"]


async def test_empty_directory_is_reported_as_empty(tmp_path):
    async with working(tmp_path) as here:
        assert (await here.call("list_directory", path=".")).text == "[the directory is empty]"


async def test_long_list_is_cut_with_a_note(tmp_path):
    for number in range(MAX_ENTRIES + 7):
        (tmp_path / f"{number:05}").touch()
    async with working(tmp_path) as here:
        text = (await here.call("list_directory", path=".")).text
        assert text.endswith("\n[7 more left out; search_files finds names by a pattern]")
        assert len(text.split("\n")) == MAX_ENTRIES + 1


@pytest.mark.parametrize(("path", "words"), [("none", "does not exist"), ("file", "a directory should be")])
async def test_path_that_is_not_a_directory_is_refused(path, words, tmp_path):
    (tmp_path / "file").touch()
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match=words):
            await here.call("list_directory", path=path)


async def test_directory_outside_is_listed_only_if_allowed(tmp_path):
    (tmp_path / "cwd").mkdir()
    async with working(tmp_path / "cwd") as here:
        with pytest.raises(ToolError, match="outside"):
            await here.prepare("list_directory", path="..")
    async with working(tmp_path / "cwd", ask_outside_reads=True) as here:
        call = await here.prepare("list_directory", path="..")
        assert call.action == Action("read", str(tmp_path), "list_directory")
        assert (await here.run(call)).text == "cwd/"
