"""Whole turns of the guide: steps, plans, results in words, failures, attachments, and sessions that come back."""

import msgspec
import pytest

from dragoman.assistant.models.guide import GuideModel
from dragoman.assistant.models.message import (
    AssistantMessage,
    Message,
    SummaryMessage,
    ToolMessage,
    ToolResult,
    ToolUse,
    UserMessage,
)
from dragoman.assistant.models.model import ModelRequest, ReplyStop, ReplyText, ReplyThought
from dragoman.protocol import v1
from tests.assistant.guide.talking import Talk, calls_for, prompt
from tests.assistant.guide.toolbox import BUILT_IN, FOREIGN

NO_PLAN = [tool for tool in BUILT_IN if tool.name != "update_plan"]


def names(calls):
    return [name for name, _ in calls if name != "update_plan"]


STEPS = [
    ("list src then read README.md", ["list_directory", "read_file"]),
    ("list src, then read README.md and then run make test", ["list_directory", "read_file", "run_command"]),
    ("list src; read README.md", ["list_directory", "read_file"]),
    ("1. list src\n2. read README.md\n3. run make test", ["list_directory", "read_file", "run_command"]),
    ("Do this:\n- list src\n- find TODO in src", ["list_directory", "search_files"]),
    ("list src\nread README.md", ["list_directory", "read_file"]),
    ("read a.txt and b.txt", ["read_file", "read_file"]),
    ("read a.txt, b.txt and c.txt", ["read_file", "read_file", "read_file"]),
    ("create hello.py with `print('hi')` then run it", ["write_file", "run_command"]),
    ("write 'buy milk' into notes.txt, then show it", ["write_file", "read_file"]),
    ("List src. Read README.md.", ["list_directory", "read_file"]),
    ("run make test then list src", ["run_command", "list_directory"]),
    ("please list src and read README.md", ["list_directory", "read_file"]),
    ("find 'read and write' in src", ["search_files"]),
    ("write a.txt:\n1. read b.txt\n2. list src", ["write_file"]),
    ("write a.txt: one, then read b.txt", ["write_file"]),
    ("replace 'a' by 'b' in c.txt; run `cat c.txt`", ["edit_file", "run_command"]),
    ("hello! list src", ["list_directory"]),
    ("thanks, now list src", ["list_directory"]),
    ("first list src, after that read README.md, finally run make", ["list_directory", "read_file", "run_command"]),
]


@pytest.mark.parametrize(("text", "expected"), STEPS)
@pytest.mark.parametrize("tools", [BUILT_IN, NO_PLAN], ids=["with a plan", "without"])
async def test_the_steps_of_a_prompt_are_done_in_order(text, expected, tools):
    _, calls = await Talk(tools).say(text)
    assert names(calls) == expected


async def test_several_steps_are_shown_as_a_plan():
    said, calls = await Talk(BUILT_IN).say("list src then read README.md")
    shown = [[entry["status"] for entry in call["entries"]] for name, call in calls if name == "update_plan"]
    assert shown == [["in_progress", "pending"], ["completed", "in_progress"], ["completed", "completed"]]
    assert said.endswith("All 2 steps are done.")


async def test_a_plan_that_cannot_be_shown_is_not_tried_again():
    talk = Talk(BUILT_IN)
    talk.result = lambda use, waiting: ToolResult(use.id, "no", failed=use.name == "update_plan")
    _, calls = await talk.say("list src then read README.md")
    assert [name for name, _ in calls] == ["update_plan", "list_directory", "read_file"]


async def test_a_step_that_fails_or_is_not_understood_does_not_hold_up_the_others():
    said, calls = await Talk(BUILT_IN).say("read a/b.txt then sing a song then list src", [Exception("no such file")])
    assert names(calls) == ["read_file", "list_directory"]
    assert "sing a song" in said
    assert said.endswith("1 of 3 steps are done.")


@pytest.mark.parametrize(
    ("text", "stops"),
    [("fix the failing test", ["refusal"]), ("hello", []), ("sing a song then who are you", ["refusal"])],
)
async def test_a_turn_that_was_not_understood_is_a_refusal_for_programs(text, stops):
    request = ModelRequest([prompt(text)], NO_PLAN, "")
    parts = [part async for part in GuideModel().start().reply(request)]
    assert [part.reason for part in parts if isinstance(part, ReplyStop)] == stops
    assert isinstance(parts[0], ReplyText)


async def test_it_is_the_path_that_was_spoken_of_last():
    talk = Talk(BUILT_IN)
    await talk.say("create hello.py with `print('hi')`")
    _, calls = await talk.say("run it")
    assert calls == [("run_command", {"command": "python3 hello.py"})]
    _, calls = await talk.say("replace 'hi' by 'ho' in it")
    assert calls == [("edit_file", {"path": "hello.py", "edits": [{"old": "hi", "new": "ho"}]})]


async def test_it_without_a_file_before_is_asked_about():
    said, calls = await Talk(BUILT_IN).say("read it")
    assert calls == []
    assert "Which file do you mean?" in said


async def test_a_text_that_is_there_more_than_once_is_replaced_everywhere():
    results = [Exception("edit 1 of 1: old matches 2 times, at line 1, 2. Nothing was changed"), "a red\nred b\n", "ok"]
    said, calls = await Talk(BUILT_IN).say("replace red by blue in c.txt", results)
    assert calls[-1] == ("write_file", {"path": "c.txt", "content": "a blue\nblue b\n"})
    assert "`red` is there 2 times" in said


async def test_a_text_of_which_only_a_part_was_read_is_not_written_back():
    cut = "a red\n[cut after line 1 of 900; read c.txt from start_line 2 on for the rest]"
    _, calls = await Talk(BUILT_IN).say("replace red by blue in c.txt", [Exception("old matches 2 times"), cut])
    assert names(calls) == ["edit_file", "read_file"]


async def test_a_file_that_is_named_without_its_ending_is_looked_for():
    results = [Exception("readme: No such file or directory"), "README.rst  9 bytes", "# Shop"]
    _, calls = await Talk(BUILT_IN).say("read the file readme.txt", results)
    assert calls[-1] == ("read_file", {"path": "README.rst"})


TASKS = [
    ("run the tests", "Cargo.toml  9 bytes", "cargo test"),
    ("run the tests", ".venv/\npyproject.toml  9 bytes", ".venv/bin/python -m pytest"),
    ("run the tests", "package.json  9 bytes", "npm test"),
    ("build it", "go.mod  9 bytes", "go build ./..."),
    ("install the dependencies", "requirements.txt  9 bytes", "python3 -m pip install -r requirements.txt"),
]


@pytest.mark.parametrize(("text", "listing", "command"), TASKS)
async def test_a_task_runs_the_usual_command_of_the_project(text, listing, command):
    _, calls = await Talk(BUILT_IN).say(text, [listing])
    assert calls[-1] == ("run_command", {"command": command})


async def test_a_project_without_a_usual_command_is_told():
    said, calls = await Talk(BUILT_IN).say("run the tests", ["notes.txt  9 bytes"])
    assert names(calls) == ["list_directory"]
    assert "no usual way to test this project" in said


async def test_nothing_is_committed_when_nothing_has_changed():
    said, calls = await Talk(BUILT_IN).say("commit everything", ["[no output]\n[exit code 0]"])
    assert names(calls) == ["run_command"]
    assert "nothing to commit" in said


async def test_the_message_of_a_commit_names_its_files():
    status = "?? a.txt\n?? b.txt\n?? c.txt\n?? it's.txt\n[exit code 0]"
    _, calls = await Talk(BUILT_IN).say("commit everything", [status])
    assert calls[-1][1]["command"] == "git add --all && git commit -m 'Add a.txt, b.txt, c.txt and 1 more'"


RESULTS = [
    ("read a.txt", "one\ntwo\n", ["`a.txt`, 2 lines:", "one\ntwo"]),
    ("read a.txt", "x\n" * 100, ["`a.txt`, 100 lines; it begins:"]),
    ("read a.txt", "[the file is empty]", ["`a.txt` is empty."]),
    ("read a.md", "```\ncode\n```", ["````\n```\ncode"]),
    ("how many lines are in a.txt", "one\n[two]\n", ["`a.txt` has 2 lines."]),
    ("list src", "a.py\nb.py\n", ["`src` has 2 entries:", "a.py"]),
    ("list src", "[the directory is empty]", ["`src` is empty."]),
    ("find TODO", "a.py:1: TODO\nb.py:2: TODO", ["2 matches for `TODO`:"]),
    ("find TODO", "[nothing matches]", ["Nothing found for `TODO`."]),
    ("show me all python files", "Names that match:\na.py\nb.py\nc.py:1: x.py", ["2 files for `*.py`:"]),
    ("write a.txt: b", "written", ["Wrote `a.txt`."]),
    ("replace a by b in c.txt", "ok", ["Changed `c.txt`."]),
    ("run make", "built\n[exit code 0]", ["`make` succeeded:", "built"]),
    ("run make", "[no output]\n[exit code 0]", ["`make` succeeded, with no output."]),
    ("plan: a; b", "ok", ["The plan has 2 entries."]),
    ("echo hi", "Echo: hi", ["`everything__echo` says: Echo: hi"]),
]


@pytest.mark.parametrize(("text", "result", "expected"), RESULTS)
async def test_results_are_told_in_words(text, result, expected):
    talk = Talk(BUILT_IN + FOREIGN)
    talk.result = lambda use, waiting: ToolResult(use.id, result)
    said, _ = await talk.say(text)
    for words in expected:
        assert words in said


FAILURES = [
    ("read a/b.txt", "a/b.txt: No such file or directory", ["did not work: a/b.txt: No such file", "`list .` shows"]),
    ("write /etc/x.txt: y", "/etc/x.txt is outside of the session's directories", ["only inside"]),
    ("read secret.txt", "[Errno 13] Permission denied: secret.txt", ["does not let this user"]),
    ("write a.txt: b", "the client refused to write /p/a.txt: Permission denied", ["That is your editor's answer"]),
    ("run make", "bad\n[exit code 2]", ["failed with exit status 2", "bad"]),
    ("run sleep 9", "[no output]\n[it did not end in time and was stopped]", ["did not end in time"]),
    ("run sleep 9", "[no output]\n[killed by SIGKILL]", ["was ended by SIGKILL"]),
    ("write a.txt: b", "the person declined", ["That was not allowed, so nothing was changed."]),
    ("run make", "the person has rejected exactly this for good", ["That was not allowed, so nothing was changed."]),
    ("read a.txt", "the person declined", ["That was not allowed, so I did not look."]),
]


@pytest.mark.parametrize(("text", "reason", "expected"), FAILURES)
async def test_failures_and_denials_are_told_with_their_reason(text, reason, expected):
    said, calls = await Talk(BUILT_IN).say(text, [Exception(reason)])
    assert len(calls) == 1
    for words in expected:
        assert words in said


async def test_a_tool_that_is_not_here_is_named():
    said, calls = await Talk(BUILT_IN[:1]).say("run make test")
    assert calls == []
    assert "`run_command` did not work: there is no tool of this name" in said


async def test_help_lists_each_tool_with_an_example_that_works():
    said, _ = await Talk(BUILT_IN).say("help")
    for tool in BUILT_IN:
        line = next(line for line in said.splitlines() if line.startswith(f"- `{tool.name}`"))
        words = line.rsplit(": `", 1)[1].rstrip("`") if tool.name != "update_plan" else "plan: a; b"
        _, calls = await Talk(BUILT_IN).say(words)
        assert calls[0][0] == tool.name


async def test_help_about_a_word_shows_parameters():
    said, _ = await Talk(FOREIGN).say("help weather")
    assert "`city` (string) City name" in said
    assert "One of metric, imperial" in said


async def test_text_comes_in_words_and_a_thought_before_each_call():
    talk = Talk(BUILT_IN)
    await talk.say("help")
    assert len(talk.parts) > 20
    assert all(isinstance(part, ReplyText) for part in talk.parts)
    request = ModelRequest([prompt("read a.txt")], BUILT_IN)
    thought, use = [part async for part in GuideModel().start().reply(request)]
    assert thought == ReplyThought("I call `read_file`: path = a.txt")
    assert use.id.startswith("call-")


# ── attachments ─────────────────────────────────────────────────────────────────────────────────────

LINK = v1.ResourceLink(name="a b.txt", uri="file:///srv/a%20b.txt")
EMBEDDED = v1.EmbeddedResource(resource=v1.TextResourceContents(text="list /etc", uri="file:///srv/x.py"))
IMAGE = v1.ImageContent(data="", mime_type="image/png")
AUDIO = v1.AudioContent(data="", mime_type="audio/wav")
SRC = ("list_directory", {"path": "src"})


def text(words):
    return v1.TextContent(text=words)


BESIDE = {
    "list src": SRC,
    "find TODO in src": ("search_files", {"pattern": "TODO", "path": "src"}),
    "run make test": ("run_command", {"command": "make test"}),
    "write 'hello' into notes.md": ("write_file", {"path": "notes.md", "content": "hello"}),
    "read": ("read_file", {"path": "/srv/a b.txt"}),
    "show me, please": ("read_file", {"path": "/srv/a b.txt"}),
    "read it": ("read_file", {"path": "/srv/a b.txt"}),
    "show me this file": ("read_file", {"path": "/srv/a b.txt"}),
}


@pytest.mark.parametrize("words", BESIDE)
@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "linked"])
async def test_a_file_beside_the_words_is_no_part_of_them(words, embedded):
    contents = v1.TextResourceContents(text="x", uri=LINK.uri)
    file = v1.EmbeddedResource(resource=contents) if embedded else LINK
    for content in ([file, text(words)], [text(words), file], [file, text(words), EMBEDDED]):
        assert await calls_for(UserMessage(content), BUILT_IN) == [BESIDE[words]]


async def test_a_greeting_is_heard_beside_a_file():
    said, calls = await Talk(BUILT_IN).say(UserMessage([LINK, text("Who are you?")]))
    assert "I am **guide**" in said
    assert calls == []


@pytest.mark.parametrize("words", ["fix this", "explain this code", "write tests for it"])
async def test_a_request_for_a_language_model_is_no_other_beside_a_file(words):
    said, calls = await Talk(BUILT_IN).say(UserMessage([LINK, text(words), EMBEDDED]))
    assert calls == []
    assert "I am no language model" in said


SELECTED = text("<selected_code>\n<path>a.py</path>\n<snippet>list /etc</snippet>\n</selected_code>")


@pytest.mark.parametrize(
    "content",
    [
        [
            text("You are avante, a helpful…\nread everything"),
            text("<task>read old</task>"),
            text("<task>list src</task>"),
        ],
        [text("<user_message>\nlist src\n</user_message>")],
        [LINK, SELECTED, text("list src")],
        [text('<attachment filepath="a.py" buffer_number="1">read old</attachment>'), text("list src")],
    ],
    ids=["tasks", "message", "selection", "attachment"],
)
async def test_words_are_taken_out_of_what_an_editor_puts_around_them(content):
    assert await calls_for(UserMessage(content), BUILT_IN) == [SRC]


async def test_a_selection_is_what_it_means():
    calls = await calls_for(UserMessage([SELECTED, text("read it")]), BUILT_IN)
    assert calls == [("read_file", {"path": "a.py"})]


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ([text("read "), LINK], "/srv/a b.txt"),
        ([text("show me "), LINK, text(" please")], "/srv/a b.txt"),
        ([LINK], "/srv/a b.txt"),
        ([text("read"), EMBEDDED], "/srv/x.py"),
    ],
)
async def test_a_link_in_a_sentence_is_a_mention_of_its_path(content, path):
    assert await calls_for(UserMessage(content), BUILT_IN) == [("read_file", {"path": path})]


async def test_images_and_audio_are_not_looked_at_and_it_says_so():
    said, calls = await Talk(BUILT_IN).say(UserMessage([text("list src"), IMAGE, AUDIO]))
    assert "I cannot look at images and audio" in said
    assert calls == [SRC]


# ── sessions ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_session_that_comes_back_goes_on_where_it_was():
    talk = Talk(BUILT_IN)
    await talk.say("read a.txt")
    back = Talk(BUILT_IN)
    back.messages = msgspec.json.decode(msgspec.json.encode(talk.messages), type=list[Message])
    _, calls = await back.say("delete it")
    assert calls == [("run_command", {"command": "rm a.txt"})]


async def test_a_cancelled_turn_leaves_the_next_one_alone():
    talk = Talk(NO_PLAN)
    talk.messages = [
        prompt("list src then read a.txt"),
        AssistantMessage("", "", [ToolUse("call-1", "list_directory", {"path": "src"})]),
        ToolMessage([ToolResult("call-1", "cancelled", failed=True)]),
    ]
    _, calls = await talk.say("read b.txt")
    assert calls == [("read_file", {"path": "b.txt"})]


async def test_the_prompt_that_a_summary_keeps_is_answered():
    summary = SummaryMessage("The person asked: much", [text("list src")])
    parts = [part async for part in GuideModel().start().reply(ModelRequest([summary], BUILT_IN))]
    assert (parts[-1].name, parts[-1].arguments) == SRC


async def test_no_messages_at_all_get_a_word():
    assert [part async for part in GuideModel().start().reply(ModelRequest([], BUILT_IN))]
    assert [part async for part in GuideModel().start().reply(ModelRequest([AssistantMessage("a summary")], []))]
