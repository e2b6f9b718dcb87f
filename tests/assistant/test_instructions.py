"""`AGENTS.md`: only the nearest one inside the session's directories is used."""

import os

import pytest

from dragoman.assistant.instructions import MAX_PROJECT_LENGTH, instructions_for
from tests.assistant.tools.working import READS, Buffers, working


async def instructions_in(cwd, *directories, **options):
    async with working(cwd, *directories, **options) as work:
        return await instructions_for(work.workspace, "")


@pytest.fixture
def tree(tmp_path):
    """Create a project inside a larger one, in an unrelated directory."""
    inner = tmp_path / "outer" / "middle" / "inner"
    inner.mkdir(parents=True)
    return tmp_path, tmp_path / "outer", inner


async def test_agents_md_of_the_cwd_is_used(tree):
    _, _, inner = tree
    (inner / "AGENTS.md").write_text("Use tabs.")
    assert "From the project's AGENTS.md:\n\nUse tabs." in await instructions_in(inner)


async def test_agents_md_above_the_session_directories_is_not_read(tree):
    top, outer, inner = tree
    (top / "AGENTS.md").write_text("Not yours.")
    (outer / "AGENTS.md").write_text("Not yours.")
    assert "Not yours." not in await instructions_in(inner)


async def test_agents_md_is_found_up_to_the_sessions_directory(tree):
    top, outer, inner = tree
    (top / "AGENTS.md").write_text("Not yours.")
    (outer / "AGENTS.md").write_text("Use tabs.")
    words = await instructions_in(inner, outer)
    assert f"From the project's {outer / 'AGENTS.md'}:\n\nUse tabs." in words
    assert "Not yours." not in words


async def test_only_the_nearest_agents_md_is_used(tree):
    _, outer, inner = tree
    (outer / "AGENTS.md").write_text("Far.")
    (outer / "middle" / "AGENTS.md").write_text("Near.")
    words = await instructions_in(inner, outer)
    assert "Near." in words
    assert "Far." not in words


async def test_empty_agents_md_is_ignored(tree):
    _, outer, inner = tree
    (inner / "AGENTS.md").write_text(" \n")
    (outer / "AGENTS.md").write_text("Use tabs.")
    assert "Use tabs." in await instructions_in(inner, outer)


async def test_agents_md_of_a_sibling_directory_is_not_read(tree):
    top, _, inner = tree
    beside = top / "beside"
    beside.mkdir()
    (beside / "AGENTS.md").write_text("Of another project.")
    assert "Of another project." not in await instructions_in(inner, beside)


@pytest.mark.parametrize("target", ["secret.md", "../secret.md"])
async def test_link_to_a_file_outside_is_not_followed(target, tree):
    _, outer, inner = tree
    (outer / "secret.md").write_text("SECRET")
    (outer / "middle" / "secret.md").write_text("SECRET")
    os.symlink(os.path.join("..", target), inner / "AGENTS.md")
    assert "SECRET" in (inner / "AGENTS.md").read_text()
    assert "SECRET" not in await instructions_in(inner)


async def test_link_to_a_file_inside_is_followed(tree):
    _, outer, inner = tree
    (outer / "CLAUDE.md").write_text("Use tabs.")
    (inner / "AGENTS.md").symlink_to(outer / "CLAUDE.md")
    assert "Use tabs." in await instructions_in(inner, outer)


async def test_link_outside_does_not_hide_a_file_further_up(tree):
    top, outer, inner = tree
    (top / "secret.md").write_text("SECRET")
    (inner / "AGENTS.md").symlink_to(top / "secret.md")
    (outer / "AGENTS.md").write_text("Use tabs.")
    words = await instructions_in(inner, outer)
    assert "Use tabs." in words
    assert "SECRET" not in words


@pytest.mark.parametrize("what", ["directory", "binary", "fifo"])
async def test_agents_md_that_is_not_text_is_skipped(what, tree):
    _, _, inner = tree
    path = inner / "AGENTS.md"
    if what == "directory":
        path.mkdir()
    elif what == "binary":
        path.write_bytes(b"\0\1")
    else:
        os.mkfifo(path)
    assert "From the project" not in await instructions_in(inner)


async def test_long_agents_md_is_cut(tree):
    _, _, inner = tree
    (inner / "AGENTS.md").write_text("x" * (MAX_PROJECT_LENGTH + 1000))
    words = await instructions_in(inner)
    assert words.count("x" * MAX_PROJECT_LENGTH) == 1
    assert "x" * (MAX_PROJECT_LENGTH + 1) not in words


async def test_unsaved_changes_are_read(tree):
    _, _, inner = tree
    (inner / "AGENTS.md").write_text("Old.")
    buffers = Buffers(**{str(inner / "AGENTS.md"): "New."})
    assert "New." in await instructions_in(inner, capabilities=READS, set_up=buffers.set_up)


async def test_client_is_not_asked_for_a_missing_file(tree):
    _, outer, inner = tree
    buffers = Buffers()
    await instructions_in(inner, outer, capabilities=READS, set_up=buffers.set_up)
    assert buffers.read == []
