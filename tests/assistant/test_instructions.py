"""`AGENTS.md`: the nearest one that lies in the session's directories, and no other."""

import os

import pytest

from dragoman.assistant.instructions import MAX_PROJECT_LENGTH, instructions_for
from tests.assistant.tools.working import READS, Buffers, working


async def told(cwd, *directories, **options):
    async with working(cwd, *directories, **options) as work:
        return await instructions_for(work.workspace, "")


@pytest.fixture
def tree(tmp_path):
    """A project in a larger one, in a directory that is nobody's business."""
    inner = tmp_path / "outer" / "middle" / "inner"
    inner.mkdir(parents=True)
    return tmp_path, tmp_path / "outer", inner


async def test_that_of_the_cwd_is_told(tree):
    _, _, inner = tree
    (inner / "AGENTS.md").write_text("Use tabs.")
    assert "From the project's AGENTS.md:\n\nUse tabs." in await told(inner)


async def test_above_the_cwd_nothing_is_read_that_the_session_does_not_have(tree):
    top, outer, inner = tree
    (top / "AGENTS.md").write_text("Not yours.")
    (outer / "AGENTS.md").write_text("Not yours.")
    assert "Not yours." not in await told(inner)


async def test_above_the_cwd_it_is_looked_for_up_to_the_directory_that_the_session_has(tree):
    top, outer, inner = tree
    (top / "AGENTS.md").write_text("Not yours.")
    (outer / "AGENTS.md").write_text("Use tabs.")
    words = await told(inner, outer)
    assert f"From the project's {outer / 'AGENTS.md'}:\n\nUse tabs." in words
    assert "Not yours." not in words


async def test_the_nearest_one_counts_alone(tree):
    _, outer, inner = tree
    (outer / "AGENTS.md").write_text("Far.")
    (outer / "middle" / "AGENTS.md").write_text("Near.")
    words = await told(inner, outer)
    assert "Near." in words
    assert "Far." not in words


async def test_an_empty_one_is_none(tree):
    _, outer, inner = tree
    (inner / "AGENTS.md").write_text(" \n")
    (outer / "AGENTS.md").write_text("Use tabs.")
    assert "Use tabs." in await told(inner, outer)


async def test_a_directory_beside_the_cwd_is_not_looked_in(tree):
    top, _, inner = tree
    beside = top / "beside"
    beside.mkdir()
    (beside / "AGENTS.md").write_text("Of another project.")
    assert "Of another project." not in await told(inner, beside)


@pytest.mark.parametrize("target", ["secret.md", "../secret.md"])
async def test_a_link_that_leads_out_is_not_followed(target, tree):
    _, outer, inner = tree
    (outer / "secret.md").write_text("SECRET")
    (outer / "middle" / "secret.md").write_text("SECRET")
    os.symlink(os.path.join("..", target), inner / "AGENTS.md")
    assert "SECRET" in (inner / "AGENTS.md").read_text()
    assert "SECRET" not in await told(inner)


async def test_a_link_that_stays_inside_is_followed(tree):
    _, outer, inner = tree
    (outer / "CLAUDE.md").write_text("Use tabs.")
    (inner / "AGENTS.md").symlink_to(outer / "CLAUDE.md")
    assert "Use tabs." in await told(inner, outer)


async def test_a_link_that_leads_out_does_not_hide_one_further_up(tree):
    top, outer, inner = tree
    (top / "secret.md").write_text("SECRET")
    (inner / "AGENTS.md").symlink_to(top / "secret.md")
    (outer / "AGENTS.md").write_text("Use tabs.")
    words = await told(inner, outer)
    assert "Use tabs." in words
    assert "SECRET" not in words


@pytest.mark.parametrize("what", ["directory", "binary", "fifo"])
async def test_what_is_no_text_is_passed_by(what, tree):
    _, _, inner = tree
    path = inner / "AGENTS.md"
    if what == "directory":
        path.mkdir()
    elif what == "binary":
        path.write_bytes(b"\0\1")
    else:
        os.mkfifo(path)
    assert "From the project" not in await told(inner)


async def test_a_long_one_is_cut(tree):
    _, _, inner = tree
    (inner / "AGENTS.md").write_text("x" * (MAX_PROJECT_LENGTH + 1000))
    words = await told(inner)
    assert words.count("x" * MAX_PROJECT_LENGTH) == 1
    assert "x" * (MAX_PROJECT_LENGTH + 1) not in words


async def test_changes_that_are_not_saved_yet_count(tree):
    _, _, inner = tree
    (inner / "AGENTS.md").write_text("Old.")
    buffers = Buffers(**{str(inner / "AGENTS.md"): "New."})
    assert "New." in await told(inner, capabilities=READS, set_up=buffers.set_up)


async def test_a_client_is_not_asked_for_what_is_not_there(tree):
    _, outer, inner = tree
    buffers = Buffers()
    await told(inner, outer, capabilities=READS, set_up=buffers.set_up)
    assert buffers.read == []
