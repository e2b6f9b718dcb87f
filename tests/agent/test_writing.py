"""A file that the person changes while they are asked about it is left alone."""

import pytest

from dragoman.agent import ToolFailure
from tests.agent.connecting import make_agent, session_with


async def save(turn):
    async with turn.tool("Write a.txt", kind="edit", locations=["a.txt"]) as call:
        await call.show_diff("a.txt", old=await turn.read_text("a.txt", default=None), new="the agent's")
        if await call.allowed():
            try:
                await turn.write_text("a.txt", "the agent's")
            except ToolFailure as failure:
                await turn.say(str(failure))


@pytest.mark.parametrize("files", ["none", "write"])
@pytest.mark.parametrize("before", [None, "old"])
async def test_an_edit_of_the_person_during_the_question_is_not_overwritten(tmp_path, files, before):
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_text(before)

    async def edit(question):
        path.write_text("the person's")
        return True

    async with session_with(make_agent(tmp_path, save), tmp_path, policy=edit, files=files) as session:
        said = (await session.run("x")).text
    assert "a.txt has changed" in said
    assert "nothing was written" in said
    assert path.read_text() == "the person's"


async def test_a_file_that_was_written_may_be_written_again(tmp_path):
    async def answer(turn):
        async with turn.tool("Write a.txt", kind="edit", locations=["a.txt"]) as call:
            await call.show_diff("a.txt", old=None, new="one")
            await call.allowed()
            await turn.write_text("a.txt", "one")
            await turn.write_text("./a.txt", "two")

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        [call] = (await session.run("x")).tool_calls
    assert call.status == "completed"
    assert (tmp_path / "a.txt").read_text() == "two"


async def test_a_diff_of_a_call_that_has_ended_binds_no_later_write(tmp_path):
    async def answer(turn):
        async with turn.tool("Show", kind="edit", locations=["a.txt"]) as call:
            await call.show_diff("a.txt", old="not this", new="new")
        await turn.write_text("a.txt", "new")

    (tmp_path / "a.txt").write_text("old")
    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        await session.run("x")
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("found", "expected", "written"),
    [("old", "old", True), ("old", None, False), ("old", "other", False), (None, None, True), (None, "old", False)],
)
async def test_a_program_says_what_text_it_expects(tmp_path, found, expected, written):
    path = tmp_path / "a.txt"
    if found is not None:
        path.write_text(found)

    async def answer(turn):
        try:
            await turn.write_text("a.txt", "new", expected=expected)
        except ToolFailure as failure:
            await turn.say(str(failure))

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        said = (await session.run("x")).text
    assert ("nothing was written" in said) is not written
    assert (path.read_text() if path.exists() else None) == ("new" if written else found)
