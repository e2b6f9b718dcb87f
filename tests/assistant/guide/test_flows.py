"""Whole turns: steps, plans, results in words, failures, denials, questions, and sessions that come back."""

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
from dragoman.assistant.models.model import ReplyText, ReplyThought
from dragoman.protocol import v1
from tests.assistant.guide.talking import Talk, plain, prompt, reply
from tests.assistant.guide.toolbox import BUILT_IN, FOREIGN, tool

NO_PLAN = [one for one in BUILT_IN if one.name != "update_plan"]


def names(calls):
    return [name for name, _ in calls if name != "update_plan"]


def plans(calls):
    return [[entry["status"] for entry in arguments["entries"]] for name, arguments in calls if name == "update_plan"]


STEPS = [
    ("list src then read README.md", ["list_directory", "read_file"]),
    ("list src, then read README.md and then run make test", ["list_directory", "read_file", "run_command"]),
    ("list src; read README.md", ["list_directory", "read_file"]),
    ("1. list src\n2. read README.md\n3. run make test", ["list_directory", "read_file", "run_command"]),
    ("Do this:\n- list src\n- find TODO in src", ["list_directory", "search_files"]),
    ("list src\nread README.md", ["list_directory", "read_file"]),
    ("read a.txt and b.txt", ["read_file", "read_file"]),
    ("read a.txt, b.txt and c.txt", ["read_file", "read_file", "read_file"]),
    ("write notes.txt: buy milk then read notes.txt", ["write_file", "read_file"]),
    ("create hello.py with print('hi') then run it", ["write_file", "run_command"]),
    ("write notes.txt: buy milk, then show it", ["write_file", "read_file"]),
    ("List src. Read README.md.", ["list_directory", "read_file"]),
    ("run make test then list src", ["run_command", "list_directory"]),
    ("please list src and read README.md", ["list_directory", "read_file"]),
    ("find 'read and write' in src", ["search_files"]),
    ("write a.txt:\n1. read b.txt\n2. list src", ["write_file"]),
    ("replace 'a' by 'b' in c.txt; run `cat c.txt`", ["edit_file", "run_command"]),
    ("hello! list src", ["list_directory"]),
    ("thanks, now list src", ["list_directory"]),
    ("first list src, after that read README.md, finally run make", ["list_directory", "read_file", "run_command"]),
]


@pytest.mark.parametrize(("text", "expected"), STEPS)
async def test_the_steps_of_a_prompt_are_done_in_order(text, expected):
    _, calls = await Talk(BUILT_IN).say(text)
    assert names(calls) == expected


@pytest.mark.parametrize(("text", "expected"), STEPS)
async def test_steps_are_done_without_a_plan_tool_too(text, expected):
    said, calls = await Talk(NO_PLAN).say(text)
    assert names(calls) == expected
    assert said.strip().endswith("done.") or said.strip().endswith("Done.")


async def test_a_plan_is_kept_for_several_steps():
    said, calls = await Talk(BUILT_IN).say("list src then read README.md then run make test")
    assert plans(calls) == [
        ["in_progress", "pending", "pending"],
        ["completed", "in_progress", "pending"],
        ["completed", "completed", "in_progress"],
        ["completed", "completed", "completed"],
    ]
    assert said.endswith("All 3 steps are done.")


async def test_one_step_has_no_plan():
    _, calls = await Talk(BUILT_IN).say("list src")
    assert plans(calls) == []


async def test_a_plan_that_cannot_be_shown_is_not_tried_again():
    talk = Talk(BUILT_IN)
    talk.play = lambda use, waiting: ToolResult(use.id, "no", failed=use.name == "update_plan")
    _, calls = await talk.say("list src then read README.md")
    assert [name for name, _ in calls] == ["update_plan", "list_directory", "read_file"]


async def test_it_is_the_path_that_was_spoken_of_last():
    talk = Talk(BUILT_IN)
    await talk.say("create hello.py with print('hi')")
    _, calls = await talk.say("run it")
    assert calls == [("run_command", {"command": "python3 hello.py"})]
    _, calls = await talk.say("replace 'hi' by 'ho' in it")
    assert calls == [("edit_file", {"path": "hello.py", "edits": [{"old": "hi", "new": "ho"}]})]


RESULTS = [
    ("read a.txt", "one\ntwo\n", ["`a.txt`, 2 lines:", "one\ntwo", "Done."]),
    ("read a.txt", "x\n" * 100, ["`a.txt`, 100 lines; it begins:"]),
    ("read a.txt", "", ["`a.txt` is empty."]),
    ("list src", "a.py\nb.py\n", ["`src` has 2 entries:", "a.py"]),
    ("list src", "a.py", ["`src` has 1 entry:"]),
    ("find TODO", "a.py:1: TODO\nb.py:2: TODO", ["2 matches for `TODO`:"]),
    ("find TODO", "a.py:1: TODO", ["1 match for `TODO`:"]),
    ("find TODO", "No matches.", ["Nothing found for `TODO`."]),
    ("write a.txt: b", "written", ["Wrote `a.txt`."]),
    ("replace a by b in c.txt", "ok", ["Changed `c.txt`."]),
    ("run make", "built\nexit status: 0", ["`make` succeeded (exit status 0):", "built"]),
    ("run make", "bad\nexit status 2", ["`make` failed with exit status 2:", "bad"]),
    ("run true", "", ["`true` ran, with no output."]),
    ("plan: a; b", "ok", ["The plan is set: 2 entries."]),
    ("echo hi", "Echo: hi", ["`everything__echo` says: Echo: hi"]),
    ("run make", "[no output]\n[exit code 0]", ["`make` succeeded (exit status 0), with no output."]),
    ("run make", "[no output]\n[exit code unknown: the terminal did not tell it]", ["`make` ran, with no output."]),
    ("find TODO", "[nothing matches]", ["Nothing found for `TODO`."]),
    (
        "find TODO",
        "Names that match:\nTODO.md\na.py:1: TODO\n[more than 1 lines match]",
        ["2 matches", "(more than 1 lines"],
    ),
    ("list src", "[the directory is empty]", ["`src` is empty."]),
    ("read a.md", "```\ncode\n```", ["````\n```\ncode"]),
]


@pytest.mark.parametrize(("text", "result", "expected"), RESULTS)
async def test_results_are_told_in_words(text, result, expected):
    said, _ = await Talk(BUILT_IN + FOREIGN).say(text, [result])
    for words in expected:
        assert words in said


FAILURES = [
    ("read a.txt", "a.txt: No such file or directory", ["did not work: a.txt: No such file", "`list .` shows"]),
    ("replace a by b in c.txt", "old must match once; it occurs 3 times", ["exactly once"]),
    ("write /etc/x: y", "/etc/x is outside of the session's directories", ["only inside"]),
    ("read secret.txt", "[Errno 13] Permission denied: secret.txt", ["does not let this user"]),
    (
        "write a.txt: b",
        "the client refused to write /p/a.txt: Permission denied",
        ["did not work: the client refused to write /p/a.txt: Permission denied. That is your editor's answer"],
    ),
    ("run make", "exit status: 2", ["failed with exit status 2"]),
    ("run make", "bad\n[exit code 2]", ["failed with exit status 2", "bad"]),
    ("run sleep 9", "[no output]\n[it did not end in time and was stopped]", ["did not end in time"]),
    ("run sleep 9", "[no output]\n[killed by SIGKILL]", ["was ended by SIGKILL"]),
    ("write a.txt: b", "the person declined", ["That was not allowed; nothing was changed."]),
    ("write a.txt: b", "The user declined this call.", ["That was not allowed; nothing was changed."]),
    ("run make", "Permission rejected by the user", ["That was not allowed; nothing was changed."]),
    ("read a.txt", "declined", ["That was not allowed, so I did not look."]),
]


@pytest.mark.parametrize(("text", "reason", "expected"), FAILURES)
async def test_failures_and_denials_are_told_with_their_reason(text, reason, expected):
    said, calls = await Talk(BUILT_IN).say(text, [Exception(reason)])
    assert len(calls) == 1
    assert "Done." not in said
    for words in expected:
        assert words in said


async def test_a_failed_step_is_tried_once_and_the_next_one_follows():
    talk = Talk(BUILT_IN)
    said, calls = await talk.say(
        "read a.txt then write b.txt: c then list src", [Exception("no such file"), Exception("declined"), "x"]
    )
    assert names(calls) == ["read_file", "write_file", "list_directory"]
    assert said.endswith("1 of 3 steps done, 1 failed, 1 declined.")
    entries = [arguments["entries"] for name, arguments in calls if name == "update_plan"][-1]
    assert [entry["content"] for entry in entries] == ["Read a.txt (failed)", "Write b.txt: c (declined)", "List src"]


async def test_a_step_that_is_not_understood_does_not_hold_up_the_others():
    said, calls = await Talk(BUILT_IN).say("list src then sing a song then read a.txt")
    assert names(calls) == ["list_directory", "read_file"]
    assert "sing a song" in said


async def test_missing_content_is_asked_for_and_the_steps_after_it_wait():
    talk = Talk(BUILT_IN)
    said, calls = await talk.say("create a file notes.txt then list src")
    assert names(calls) == []
    assert "To use `write_file` I need `content`" in said
    _, calls = await talk.say("buy milk; then bread")
    assert [call for call in calls if call[0] != "update_plan"] == [
        ("write_file", {"path": "notes.txt", "content": "buy milk; then bread"}),
        ("list_directory", {"path": "src"}),
    ]


async def test_several_missing_arguments_are_asked_for_one_after_the_other():
    talk = Talk(FOREIGN)
    said, _ = await talk.say("create a github issue")
    assert "I need `owner`: Repository owner." in said
    said, _ = await talk.say("dragoman")
    assert "I need `repo`" in said
    said, _ = await talk.say("core")
    assert "I need `title`" in said
    _, calls = await talk.say("It fails on Mondays")
    assert calls == [("github__create_issue", {"owner": "dragoman", "repo": "core", "title": "It fails on Mondays"})]


async def test_a_question_can_be_left():
    talk = Talk(FOREIGN)
    await talk.say("what time is it?")
    said, calls = await talk.say("never mind")
    assert calls == []
    assert "leave it" in said
    _, calls = await talk.say("echo hi")
    assert calls == [("everything__echo", {"message": "hi"})]


async def test_an_answer_that_does_not_fit_is_asked_for_again():
    talk = Talk(FOREIGN)
    await talk.say("what time is it?")
    said, calls = await talk.say("Atlantis")
    assert calls == []
    assert "I could not use that" in said
    assert "I need `timezone`" in said
    _, calls = await talk.say("ok, in Tokyo")
    assert calls == [("time__get_current_time", {"timezone": "Asia/Tokyo"})]


async def test_another_request_instead_of_an_answer_is_a_request():
    talk = Talk(BUILT_IN + FOREIGN)
    await talk.say("what time is it?")
    _, calls = await talk.say("list src")
    assert calls == [("list_directory", {"path": "src"})]


async def test_a_session_that_comes_back_goes_on_where_it_was():
    talk = Talk(BUILT_IN)
    await talk.say("create a file notes.txt")
    stored = msgspec.json.encode(talk.messages)
    back = Talk(BUILT_IN)
    back.messages = msgspec.json.decode(stored, type=list[Message])
    _, calls = await back.say("buy milk")
    assert calls == [("write_file", {"path": "notes.txt", "content": "buy milk"})]


async def test_a_cancelled_turn_leaves_the_next_one_alone():
    messages = [
        prompt("list src then read a.txt"),
        AssistantMessage("", "", [ToolUse("call-1", "list_directory", {"path": "src"})]),
        ToolMessage([ToolResult("call-1", "cancelled", failed=True)]),
        prompt("read b.txt"),
    ]
    parts = plain(await reply(messages, NO_PLAN))
    assert parts[-1] == ("read_file", {"path": "b.txt"})


async def test_the_same_messages_get_the_same_reply():
    for text in ("list src then read a.txt", "help", "what time is it?", "nonsense indeed"):
        first, second = [plain(await reply([prompt(text)], BUILT_IN + FOREIGN)) for _ in range(2)]
        assert first == second


async def test_text_comes_in_words_and_thoughts_say_what_was_understood():
    parts = await reply([prompt("help")], BUILT_IN)
    assert len(parts) > 20
    assert all(isinstance(part, ReplyText) for part in parts)
    thought, use = await reply([prompt("read a.txt")], BUILT_IN)
    assert thought == ReplyThought("I understand this as `read_file` with path = a.txt.")
    assert use.id.startswith("call-")
    other = (await reply([prompt("read a.txt")], BUILT_IN))[1]
    assert use.id != other.id


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("find 'open(' in src", "open\\("),
        ("find a.b in src", "a\\.b"),
        ("find 'TODO|FIXME' in src", "TODO|FIXME"),
        ("find 'def .*main' in src", "def .*main"),
        ("find '|(' in src", "\\|\\("),
        ("find *.py", "\\.py"),
    ],
)
async def test_text_is_searched_for_as_text_where_the_tool_takes_expressions(text, pattern):
    wanted = {"type": "string", "minLength": 1, "description": "A regular expression, for lines and for file names."}
    tools = [tool("search_files", "Search.", "pattern", pattern=wanted, path="string", glob="string")]
    _, calls = await Talk(tools).say(text)
    assert calls[0][1]["pattern"] == pattern


async def test_help_shows_each_tool_that_is_there_and_no_other():
    said, _ = await Talk([BUILT_IN[0], *FOREIGN[:1]]).say("help")
    assert "`read_file`" in said
    assert "`get current time timezone: …`" in said
    assert "write_file" not in said
    said, _ = await Talk([]).say("help")
    assert "no tools" in said


async def test_the_examples_that_help_gives_work():
    from dragoman.assistant.models.guide.talk import example

    for one in BUILT_IN:
        parts = await reply([prompt(example(one).strip("`"))], BUILT_IN)
        assert [part.name for part in parts if isinstance(part, ToolUse)] == [one.name]


async def test_help_about_a_word_shows_parameters():
    said, _ = await Talk(FOREIGN).say("help weather")
    assert "`city` (string) City name" in said
    assert "One of metric, imperial" in said


@pytest.mark.parametrize("text", ["can you write poetry?", "why is the sky blue", "refactor everything"])
async def test_what_cannot_be_done_is_said_in_three_lines_with_the_way_to_a_model(text):
    said, calls = await Talk(BUILT_IN).say(text)
    assert calls == []
    assert len(said.splitlines()) == 3
    for words in ("no language model", "--model", "DRAGOMAN_MODEL", "anthropic:", "openai:", "ollama:", "agent file"):
        assert words in said


async def test_a_tool_that_is_not_here_is_named():
    said, _ = await Talk(BUILT_IN[:1]).say("run make test")
    assert "run_command" in said


async def test_a_command_is_suggested_where_there_is_no_tool():
    said, _ = await Talk(BUILT_IN).say("delete a.txt")
    assert "`run rm a.txt`" in said


LINK = v1.ResourceLink(name="a b.txt", uri="file:///srv/a%20b.txt")
EMBEDDED = v1.EmbeddedResource(resource=v1.TextResourceContents(text="x", uri="file:///srv/x.py"))
IMAGE = v1.ImageContent(data="", mime_type="image/png")
AUDIO = v1.AudioContent(data="", mime_type="audio/wav")


def said(text):
    return v1.TextContent(text=text)


BESIDE = {
    "list src": ("list_directory", {"path": "src"}),
    "find TODO in src": ("search_files", {"pattern": "TODO", "path": "src"}),
    "run make test": ("run_command", {"command": "make test"}),
    "write hello into notes.md": ("write_file", {"path": "notes.md", "content": "hello"}),
    "read": ("read_file", {"path": "/srv/a b.txt"}),
    "show me, please": ("read_file", {"path": "/srv/a b.txt"}),
    "read it": ("read_file", {"path": "/srv/a b.txt"}),
    "show me this file": ("read_file", {"path": "/srv/a b.txt"}),
}


@pytest.mark.parametrize("words", BESIDE)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "linked"])
async def test_a_file_beside_the_words_is_no_part_of_them(words, first, embedded):
    contents = v1.TextResourceContents(text="x", uri=LINK.uri)
    file = v1.EmbeddedResource(resource=contents) if embedded else LINK
    content = [file, said(words)] if first else [said(words), file]
    _, calls = await Talk(BUILT_IN).say(UserMessage(content))
    assert calls == [BESIDE[words]]


async def test_several_files_beside_the_words_are_no_part_of_them_either():
    _, calls = await Talk(BUILT_IN).say(UserMessage([LINK, EMBEDDED, said("list src"), LINK]))
    assert calls == [BESIDE["list src"]]


async def test_a_greeting_is_heard_beside_a_file():
    said_, calls = await Talk(BUILT_IN).say(UserMessage([LINK, said("Who are you?")]))
    assert "I am **guide**" in said_
    assert calls == []


SELECTED = said("<selected_code>\n<path>a.py</path>\n<snippet>list /etc</snippet>\n</selected_code>")


@pytest.mark.parametrize(
    "content",
    [
        [said("<task>list src</task>")],
        [
            said("You are avante, a helpful…\nread everything"),
            said("<task>read old</task>"),
            said("<task>list src</task>"),
        ],
        [said("<user_message>\nlist src\n</user_message>")],
        [LINK, SELECTED, said("list src")],
        [
            said("<previous_user_message>list src</previous_user_message>"),
            said("<previous_user_message>read old</previous_user_message>"),
            said("<system_context>Continuing from previous session with 2 recent user messages</system_context>"),
        ],
        [
            said("<previous_user_message>read old</previous_user_message>"),
            said("<previous_assistant_message>Done.</previous_assistant_message>"),
            said("<previous_user_message>list src</previous_user_message>"),
            said("<system_context>Continuing from previous ACP session</system_context>"),
        ],
        [said('<attachment filepath="a.py" buffer_number="1">read old</attachment>'), said("list src")],
    ],
    ids=["task", "tasks", "message", "selection", "newest first", "newest last", "attachment"],
)
async def test_words_are_taken_out_of_what_an_editor_puts_around_them(content):
    _, calls = await Talk(BUILT_IN).say(UserMessage(content))
    assert calls == [BESIDE["list src"]]


async def test_a_selection_is_what_it_means():
    _, calls = await Talk(BUILT_IN).say(UserMessage([SELECTED, said("read it")]))
    assert calls == [("read_file", {"path": "a.py"})]


async def test_tags_of_the_person_stay():
    spoken, calls = await Talk(BUILT_IN).say(UserMessage([said("write <task>x</task> into a.html")]))
    assert calls == [("write_file", {"path": "a.html", "content": "<task>x</task>"})]
    assert spoken


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ([v1.TextContent(text="read "), LINK], "/srv/a b.txt"),
        ([v1.TextContent(text="show me "), LINK, v1.TextContent(text=" please")], "/srv/a b.txt"),
        ([LINK], "/srv/a b.txt"),
        ([v1.TextContent(text="read this: "), EMBEDDED], None),
        ([v1.TextContent(text="read"), EMBEDDED], "/srv/x.py"),
    ],
)
async def test_a_link_is_a_mention_of_its_path(content, path):
    _, calls = await Talk(BUILT_IN).say(UserMessage(content))
    assert calls == ([] if path is None else [("read_file", {"path": path})])


async def test_images_and_audio_are_not_looked_at_and_it_says_so():
    said, calls = await Talk(BUILT_IN).say(UserMessage([v1.TextContent(text="list src"), IMAGE, AUDIO]))
    assert "I cannot look at images and audio" in said
    assert names(calls) == ["list_directory"]


def test_the_model_says_what_it_is():
    model = GuideModel()
    assert (model.name, model.takes, list(model.thought_levels)) == ("guide", frozenset(), [])
    assert model.context_size > 0


async def test_the_prompt_that_a_summary_keeps_is_answered():
    summary = SummaryMessage("The person asked: much", [v1.TextContent(text="list src")])
    parts = plain(await reply([summary], BUILT_IN))
    assert parts[-1] == ("list_directory", {"path": "src"})
    assert not GuideModel().summarises


async def test_no_messages_at_all_get_a_word():
    assert await reply([], BUILT_IN)
    assert await reply([AssistantMessage("a summary")], [])
