"""Turns of the guide: attachments, named tools, described results, refusals and loaded sessions."""

import asyncio
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.assistant.models.guide import GuideModel
from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
)
from dragoman.assistant.models.model import ReplyRequest, ReplyText, ReplyThought
from dragoman.protocol import v1
from tests.assistant.guide.talking import TOOLS, Talk, prompt, text, tool

# ── attachments ─────────────────────────────────────────────────────────────────────────────────────

LINK = v1.ResourceLink(name="a b.txt", uri="file:///srv/a%20b.txt")
APP = v1.EmbeddedResource(resource=v1.TextResourceContents(text="import shop\n", uri="file:///srv/src/app.py"))
UPLOADED = v1.EmbeddedResource(resource=v1.TextResourceContents(text="milk\n", uri="file:///list.txt"))
BLOB = v1.EmbeddedResource(resource=v1.BlobResourceContents(blob="AAAA", uri="file:///x.bin"))
IMAGE = v1.ImageContent(data="", mime_type="image/png")
SELECTED = text("<selected_code>\n<path>a.py</path>\n<snippet>list /etc</snippet>\n</selected_code>")


@pytest.mark.parametrize(
    "content",
    [
        ("read @src/app.py ", APP),
        ("@src/app.py", APP),
        ("read @src/app.py", APP, UPLOADED),
        ("read ", APP),
        (APP, "show me this file, please"),
        (APP,),
    ],
)
async def test_attached_file_is_shown(content):
    talk = Talk()
    said, calls = await talk.say(*content)
    assert "`/srv/src/app.py` has 1 line." in said
    assert "import shop" in said
    assert (calls, talk.stops) == ([], [])


async def test_uploaded_file_is_shown():
    said, calls = await Talk().say("what is in list.txt?", UPLOADED)
    assert "milk" in said
    assert calls == []


@pytest.mark.parametrize("content", [("read ", LINK), ("show me ", LINK, " please"), (LINK,), (LINK, "read it")])
async def test_linked_file_is_read_with_the_tool(content):
    _, calls = await Talk().say(*content)
    assert calls == [("read_file", {"path": "/srv/a b.txt"})]


@pytest.mark.parametrize(
    "content",
    [
        (APP, "list src"),
        ("list src", LINK),
        ("You are avante…", "<task>read old</task>", "<task>list src</task>"),
        (LINK, SELECTED, "list src"),
    ],
)
async def test_files_and_editor_markup_do_not_change_the_request(content):
    assert (await Talk().say(*content))[1] == [("list_directory", {"path": "src"})]


async def test_selection_is_understood_as_the_file():
    assert (await Talk().say(SELECTED, "read it"))[1] == [("read_file", {"path": "a.py"})]


async def test_unreadable_content_is_named():
    said, _ = await Talk().say("list src", IMAGE, BLOB)
    assert "I can't read images and binary files" in said


# ── tools of servers ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("list issues owner: acme repo: 'my shop'", {"owner": "acme", "repo": "my shop"}),
        ("github__list_issues --owner acme --repo shop state=OPEN", {"owner": "acme", "repo": "shop", "state": "open"}),
        ('use the tool list_issues {"owner": "a", "repo": "b"}', {"owner": "a", "repo": "b"}),
    ],
)
async def test_named_tool_is_called_with_its_arguments(words, arguments):
    assert (await Talk().say(words))[1] == [("github__list_issues", arguments)]


async def test_missing_argument_is_named_with_its_syntax():
    talk = Talk()
    said, calls = await talk.say("get_current_time")
    assert (calls, talk.stops) == ([], ["refusal"])
    assert said == "`time__get_current_time` needs `timezone`. Write `get_current_time timezone=…`."


async def test_argument_of_the_wrong_type_counts_as_missing():
    said, calls = await Talk().say("add a=1 b=two")
    assert calls == []
    assert "needs `b`" in said


async def test_ambiguous_tool_name_is_refused():
    said, calls = await Talk([tool("one__echo", ""), tool("two__echo", "")]).say("echo hello")
    assert calls == []
    assert "`one__echo` or `two__echo`" in said


async def test_server_title_cannot_break_the_surrounding_text():
    strange = msgspec.structs.replace(tool("one__echo", "", ""), title="x: `a`\n\n# b " + "c" * 1000)
    said, _ = await Talk([strange]).say("echo", results=["hi"])
    assert "`x: 'a' # b ccc" in said
    assert len(said) < 200


# ── results ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "result", "expected"),
    [
        ("read a.txt", "one\ntwo\n", "`a.txt` has 2 lines.\n\n```\none\ntwo\n```"),
        ("read a.txt", "x\n" * 100, "`a.txt` has 100 lines. The first 12:"),
        ("read a.txt", "[the file is empty]", "`a.txt` is empty."),
        ("read a.md", "```\ncode\n```", "````\n```\ncode"),
        ("list src", "a.py\nb.py\n", "`src` has 2 entries:"),
        ("list src", "[the directory is empty]", "`src` has no entries."),
        ("find TODO", "a.py:1: TODO\nb.py:2: TODO", "Found 2 matches:"),
        ("find TODO", "[nothing matches]", "Found no matches."),
        ("write a.txt: b", "written", "Wrote `a.txt`."),
        ("replace a by b in c.txt", "ok", "Changed `c.txt`."),
        ("run make", "built\n[exit code 0]", "`make` succeeded.\n\n```\nbuilt"),
        ("run make", "[no output]\n[exit code 0]", "`make` succeeded and printed nothing."),
        ("echo hi", "Echo: hi", "`everything__echo` returned: Echo: hi"),
        ("read b.txt", Exception("b.txt: No such file or directory"), "No such file or directory. Check the name"),
        ("write /etc/x: y", Exception("/etc/x is outside of the session's directories"), "only work inside"),
        ("run make", Exception("bad\n[exit code 2]"), "`make` failed with exit status 2."),
        (
            "run sleep 9",
            Exception("[no output]\n[it did not finish in time and was stopped]"),
            "did not finish in time",
        ),
        ("run sleep 9", Exception("[no output]\n[killed by SIGKILL]"), "was ended by SIGKILL"),
        ("write a.txt: b", Exception("the person declined"), "It was not allowed, so nothing was done."),
    ],
)
async def test_results_are_described(words, result, expected):
    said, calls = await Talk().say(words, results=[result])
    assert len(calls) == 1
    assert expected in said


@pytest.mark.parametrize(
    ("listing", "command"),
    [
        ("Cargo.toml  9 bytes", "cargo test"),
        (".venv/\npyproject.toml  9 bytes", ".venv/bin/python -m pytest"),
        ("package.json  9 bytes", "npm test"),
    ],
)
async def test_tests_run_with_the_usual_command(listing, command):
    _, calls = await Talk().say("run the tests", results=[listing])
    assert calls[-1] == ("run_command", {"command": command})


@pytest.mark.parametrize(
    ("words", "results", "expected"),
    [
        ("run the tests", ["notes.txt  9 bytes"], "Name the command"),
        ("read it", [], "Which file do you mean?"),
        ("show me nonsense", [], "There is no `nonsense`"),
    ],
)
async def test_impossible_request_is_a_refusal(words, results, expected):
    talk = Talk()
    said, _ = await talk.say(words, results=results)
    assert expected in said
    assert talk.stops == ["refusal"]


async def test_missing_tool_is_named():
    said, calls = await Talk(TOOLS[:1]).say("run make test")
    assert calls == []
    assert "`run_command` failed: this session has no tool of that name." in said


async def test_each_example_of_help_calls_its_tool():
    said, _ = await Talk().say("help")
    examples = re.findall(r"^- `(.+)`: ", said, re.MULTILINE)
    for one, example in zip(TOOLS[:6], examples, strict=False):
        _, calls = await Talk().say(example)
        assert calls[0][0] == one.name


async def test_text_is_streamed_and_a_call_is_announced():
    request = ReplyRequest([prompt("help")], TOOLS)
    parts = [part async for part in GuideModel().start().reply(request)]
    assert len(parts) > 20
    assert all(isinstance(part, ReplyText) for part in parts)
    thought, use = [part async for part in GuideModel().start().reply(ReplyRequest([prompt("read a.txt")], TOOLS))]
    assert thought == ReplyThought("Calling `read_file` with path = a.txt")
    assert use.id.startswith("call-")


# ── sessions ────────────────────────────────────────────────────────────────────────────────────────


async def test_loaded_session_remembers_the_last_file():
    talk, loaded = Talk(), Talk()
    await talk.say("create hello.py with `print('hi')`")
    loaded.messages = msgspec.json.decode(msgspec.json.encode(talk.messages), type=list[Message])
    _, calls = await loaded.say("replace 'hi' by 'ho' in it")
    assert calls == [("edit_file", {"path": "hello.py", "edits": [{"old": "hi", "new": "ho"}]})]


async def test_cancelled_turn_does_not_change_the_next():
    talk = Talk()
    talk.messages = [
        prompt("what is this project"),
        AssistantMessage("", "", [ToolUse("call-1", "list_directory", {"path": "."})]),
        ToolMessage([ToolResult("call-1", "cancelled", failed=True)]),
    ]
    assert (await talk.say("read b.txt"))[1] == [("read_file", {"path": "b.txt"})]


async def test_prompt_in_a_summary_is_answered():
    summary = SummaryMessage("The user asked for much.", [text("list src")])
    parts = [part async for part in GuideModel().start().reply(ReplyRequest([summary], TOOLS))]
    assert parts[-1].arguments == {"path": "src"}


SAID = st.sampled_from(
    ["read", "list", "write a.txt:", "'", "`", '"', "find", "in", "replace x by", "run", "call add", "{"]
)


@given(st.text(max_size=200) | st.lists(SAID | st.text(max_size=5), max_size=8).map(" ".join))
def test_any_text_gets_an_answer(words):
    said, _ = asyncio.run(Talk().say(words))
    assert said.strip()


@pytest.mark.parametrize("piece", ["word ", "'", "`", '"a" ', "the ", "in ", "please ", "x" * 50, " "])
def test_long_prompt_is_read_completely(piece):
    for lead in ("", "write ", "create ", "find ", "replace "):
        said, _ = asyncio.run(Talk().say(lead + piece * (100_000 // len(piece))))
        assert said.strip()
