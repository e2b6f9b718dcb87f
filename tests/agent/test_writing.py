"""A file that the user changes during the permission request is not overwritten."""

import pytest

from dragoman.agent import ToolError
from dragoman.client.policies import Decision
from tests.agent.connecting import make_agent, session_with


async def save(turn):
    async with turn.tool("Write a.txt", kind="edit", locations=["a.txt"]) as call:
        await call.show_diff("a.txt", old=await turn.read_text("a.txt", default=None), new="the agent's")
        if await call.allowed():
            try:
                await turn.write_text("a.txt", "the agent's")
            except ToolError as failure:
                await turn.say(str(failure))


@pytest.mark.parametrize("files", ["none", "write"])
@pytest.mark.parametrize("before", [None, "old"])
async def test_users_edit_during_the_permission_request_is_not_overwritten(tmp_path, files, before):
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_text(before)

    async def edit(question):
        path.write_text("the user's")
        return True

    async with session_with(make_agent(tmp_path, save), tmp_path, policy=edit, files=files) as session:
        said = (await session.run("x")).text
    assert "a.txt has changed" in said
    assert "nothing was written" in said
    assert path.read_text() == "the user's"


async def test_written_file_may_be_written_again(tmp_path):
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


async def test_diff_of_an_ended_call_does_not_bind_later_writes(tmp_path):
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
async def test_write_requires_the_expected_text(tmp_path, found, expected, written):
    path = tmp_path / "a.txt"
    if found is not None:
        path.write_text(found)

    async def answer(turn):
        try:
            await turn.write_text("a.txt", "new", expected=expected)
        except ToolError as failure:
            await turn.say(str(failure))

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        said = (await session.run("x")).text
    assert ("nothing was written" in said) is not written
    assert (path.read_text() if path.exists() else None) == ("new" if written else found)


async def test_always_for_a_command_depends_on_its_whole_input(tmp_path):
    inputs = [{"command": "git", "args": [word]} for word in ("status", "status", "push")]
    inputs += [{"command": ["git", "push"]}, {"command": "git"}]
    asked = []

    async def answer(turn):
        for given in inputs:
            async with turn.tool("Run git", kind="execute", raw_input=given) as call:
                await call.allowed()

    async def allow(question):
        asked.append(question.tool_call.raw_input)
        return Decision("allow", option_id="allow_always")

    async with session_with(make_agent(tmp_path, answer), tmp_path, policy=allow) as session:
        await session.run("x")
    assert asked == [inputs[0], *inputs[2:]]


async def test_always_option_names_its_scope(tmp_path):
    calls = [
        ("edit", ["a.txt"], {}, "edits to a.txt"),
        ("edit", ["a.txt", "b/c.txt"], {}, "edits to a.txt and b/c.txt"),
        ("edit", list("abcde"), {}, "edits to a, b and 3 more files"),
        ("edit", ["to k.txt, or any"], {}, "edits to “to k.txt, or any”"),
        ("edit", ["a\n\u202eb"], {}, "edits to “a\\n\\u202eb”"),
        ("delete", ["a.txt"], {}, "deleting a.txt"),
        ("move", ["a.txt"], {}, "moving a.txt"),
        ("execute", [], {"command": "make"}, "exactly this command"),
        ("execute", [], {"command": "make", "args": ["all"]}, "exactly this command"),
        ("execute", [], {"script": "make"}, "this tool, whatever the input"),
        ("edit", [], {}, "this tool, whatever the input"),
        ("fetch", [], {"url": "http://a"}, "this tool, whatever the input"),
    ]
    names = []

    async def answer(turn):
        for kind, paths, given, _ in calls:
            async with turn.tool("Do it", kind=kind, locations=paths, raw_input=given) as call:
                await call.allowed()

    async def note(question):
        names.append([option.name for option in question.options if option.kind in ("allow_always", "reject_always")])
        return False

    async with session_with(make_agent(tmp_path, answer), tmp_path, policy=note) as session:
        await session.run("x")
    expected = []
    for *_, granted in calls:
        what, comma, rest = granted.partition(", whatever")
        expected.append(
            [f"Allow {what} in this session{comma}{rest}", f"Always reject {what} in this project{comma}{rest}"]
        )
    assert names == expected
