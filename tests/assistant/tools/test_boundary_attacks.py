"""Each way out of the session's directories, tried with each tool, with and without a client that does the work."""

import os

import pytest

from dragoman.agent.turns.prepared_call import TargetChangedError, ToolError
from tests.assistant.tools.working import FILES, Buffers, working
from tests.table import each_row

WAYS_OUT = {
    "dots": "../outside/secret.txt",
    "deep-dots": "sub/../../outside/secret.txt",
    "absolute": "{outside}/secret.txt",
    "link-to-file": "link",
    "link-to-directory": "linked/secret.txt",
    "link-and-dots": "linked/../outside/secret.txt",
    "prefix-CVE-2025-53110": "{cwd}_evil/secret.txt",
    "link-in-parent-CVE-2025-53109": "linked/missing/new.txt",
    "magic-link": "/proc/self/root{outside}/secret.txt",
    "magic-cwd": "/proc/self/cwd/secret.txt",
}


@pytest.fixture
def place(tmp_path):
    for name in ("cwd/sub", "outside", "cwd_evil"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("outside", "cwd_evil"):
        (tmp_path / name / "secret.txt").write_text("secret")
    (tmp_path / "cwd" / "link").symlink_to(tmp_path / "outside" / "secret.txt")
    (tmp_path / "cwd" / "linked").symlink_to(tmp_path / "outside")
    return tmp_path


def path_of(way, place):
    return WAYS_OUT[way].format(cwd=place / "cwd", outside=place / "outside")


CALLS = {
    "read_file": {},
    "write_file": {"content": "mine"},
    "edit_file": {"edits": [{"old": "secret", "new": "mine"}]},
    "list_directory": {},
    "search_files": {"pattern": "secret"},
}


@each_row("with_client", [False, True])
@each_row("way", WAYS_OUT)
@each_row("tool", CALLS)
async def test_no_way_leads_outside(tool, way, with_client, place):
    buffers = Buffers()
    options = {"capabilities": FILES, "set_up": buffers.set_up} if with_client else {}
    async with working(place / "cwd", **options) as here:
        with pytest.raises(ToolError, match="outside"):
            await here.call(tool, path=path_of(way, place), **CALLS[tool])
    assert buffers.read == []
    assert buffers.written == {}
    assert (place / "outside" / "secret.txt").read_text() == "secret"
    assert sorted(os.listdir(place / "outside")) == ["secret.txt"]


@each_row("tool", ["write_file", "edit_file"])
@each_row("way", WAYS_OUT)
async def test_no_write_leads_outside_even_if_reads_may_ask(tool, way, place):
    async with working(place / "cwd", ask_outside_reads=True) as here:
        with pytest.raises(ToolError, match="cannot be written"):
            await here.prepare(tool, path=path_of(way, place), **CALLS[tool])


@pytest.mark.parametrize("with_client", [False, True], ids=["own", "client"])
async def test_directory_replaced_by_a_link_after_prepare_is_not_followed(with_client, place):
    (place / "cwd" / "sub" / "secret.txt").write_text("harmless")
    buffers = Buffers()
    options = {"capabilities": FILES, "set_up": buffers.set_up} if with_client else {}
    async with working(place / "cwd", **options) as here:
        read = await here.prepare("read_file", path="sub/secret.txt")
        search = await here.prepare("search_files", pattern="secret", path="sub")
        listing = await here.prepare("list_directory", path="sub")
        write = await here.prepare("write_file", path="sub/secret.txt", content="mine")
        buffers.read.clear()
        (place / "cwd" / "sub").rename(place / "cwd" / "old")
        (place / "cwd" / "sub").symlink_to(place / "outside")
        for call in (read, search, listing):
            with pytest.raises(ToolError, match="outside"):
                await here.run(call)
        with pytest.raises(TargetChangedError):
            await here.run(write)
    assert buffers.read == []
    assert (place / "outside" / "secret.txt").read_text() == "secret"


async def test_link_inside_is_followed(place):
    (place / "cwd" / "sub" / "a.txt").write_text("inside")
    (place / "cwd" / "alias").symlink_to("sub/a.txt")
    async with working(place / "cwd") as here:
        assert (await here.call("read_file", path="alias")).text == "inside"
        await here.call("write_file", path="alias", content="new")
        assert (place / "cwd" / "alias").is_symlink()
        assert (place / "cwd" / "sub" / "a.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("path", "words"), [("", "is empty"), ("a\0b", "NUL"), ("~/x", "not expanded"), ("a/" * 3000, "too long")]
)
async def test_invalid_path_is_refused_with_a_message(path, words, place):
    async with working(place / "cwd") as here:
        with pytest.raises(ToolError, match=words):
            await here.prepare("read_file", path=path)


async def test_circular_links_are_refused(place):
    (place / "cwd" / "round").symlink_to("round")
    async with working(place / "cwd") as here:
        with pytest.raises(ToolError):
            await here.call("read_file", path="round")
        with pytest.raises(ToolError):
            await here.call("write_file", path="round", content="x")


async def test_search_does_not_follow_links(place):
    async with working(place / "cwd") as here:
        assert (await here.call("search_files", pattern="^secret$")).text == "[nothing matches]"
