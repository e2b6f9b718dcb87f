"""The guide with the tools of real servers, as a session gives them: time, everything, filesystem and git."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest

from dragoman.assistant.models.guide import GuideModel
from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import ModelRequest, ReplyText, ReplyThought, ToolDefinition
from tests.assistant.embedding import no_embedder
from tests.assistant.guide.sentences import ASKS, BY_MEANING, DIRECT, PARAPHRASED, TALK
from tests.assistant.guide.talking import Talk, first_call, prompt
from tests.assistant.guide.toolbox import BUILT_IN, tool

REAL = msgspec.json.decode((Path(__file__).parent / "servers.json").read_bytes(), type=list[ToolDefinition])
TOOLS = BUILT_IN + REAL
BY_NAME = {one.name: one for one in REAL}


@pytest.fixture(params=["semantic", "lexical"])
def model(request):
    return GuideModel() if request.param == "semantic" else GuideModel(no_embedder)


async def answer(model, text, tools=TOOLS):
    """The first call that the guide makes for a prompt, or None, and what it says."""
    parts = [part async for part in model.start().reply(ModelRequest([prompt(text)], tools))]
    calls = [(part.name, part.arguments) for part in parts if isinstance(part, ToolUse) and part.name != "update_plan"]
    return calls[0] if calls else None, "".join(part.text for part in parts if isinstance(part, ReplyText))


@pytest.mark.parametrize(("text", "name", "arguments"), DIRECT + PARAPHRASED)
async def test_a_request_calls_the_tool_that_is_meant_with_its_arguments(model, text, name, arguments):
    assert (await answer(model, text))[0] == (name, arguments)


@pytest.mark.parametrize(("text", "name", "arguments"), BY_MEANING)
async def test_what_the_words_do_not_decide_is_called_right_or_asked_about(model, text, name, arguments):
    call, said = await answer(model, text)
    if call is not None:
        assert call == (name, arguments)
    else:
        assert f"`{BY_NAME[name].title}`" in said or "I do not understand" in said


@pytest.mark.parametrize(("text", "name", "arguments"), BY_MEANING)
async def test_with_vectors_what_the_words_do_not_decide_is_understood_or_asked_about(text, name, arguments):
    call, said = await answer(GuideModel(), text)
    assert call == (name, arguments) or f"`{BY_NAME[name].title}`" in said


@pytest.mark.parametrize(("text", "title", "parameter"), ASKS)
async def test_what_is_missing_is_asked_for_with_the_title_of_the_tool(model, text, title, parameter):
    call, said = await answer(model, text)
    assert call is None
    assert f"To use `{title}` I need `{parameter}`" in said


@pytest.mark.parametrize("text", TALK)
async def test_what_no_tool_can_do_calls_none(model, text):
    assert (await answer(model, text))[0] is None


def test_what_is_expected_here_fits_the_schemas_of_the_servers():
    for _, name, arguments in DIRECT + PARAPHRASED + BY_MEANING:
        jsonschema.validate(arguments, BY_NAME[name].parameters)


async def test_a_tool_is_spoken_of_by_its_title():
    talk = Talk(TOOLS)
    said, calls = await talk.say("what time is it in Tokyo", ["12:00"])
    assert calls == [("time__get_current_time", {"timezone": "Asia/Tokyo"})]
    assert "`time: get_current_time` says: 12:00" in said
    thoughts = [part.text for part in talk.replies[0] if isinstance(part, ReplyThought)]
    assert thoughts == ["I understand this as `time: get_current_time` with timezone = Asia/Tokyo."]
    said, _ = await talk.say("what time is it in Tokyo", [ValueError("no such zone")])
    assert "`time: get_current_time` did not work: no such zone." in said


async def test_help_shows_titles_and_can_be_asked_about_one():
    said, _ = await Talk(TOOLS).say("help sum")
    assert "**`everything: Get Sum Tool`**: Returns the sum of two numbers" in said
    assert "everything__get-sum" not in said


async def test_a_title_that_a_server_made_up_cannot_break_the_words_around_it():
    strange = msgspec.structs.replace(BY_NAME["everything__echo"], title="x: `a`\n\n# b " + "c" * 1000)
    said, _ = await Talk([strange]).say("echo hi", ["hi"])
    assert "`x: 'a' # b ccc" in said
    assert len(said) < 200


TWO = [
    msgspec.structs.replace(tool("one__echo", "Echoes", "message", message="string"), title="one: echo"),
    msgspec.structs.replace(tool("two__echo", "Echoes", "message", message="string"), title="two: echo"),
]
QUESTION = "Which of these do you mean?\n\n1. `one: echo`\n2. `two: echo`"


@pytest.mark.parametrize("reply", ["2", "two", "the second one", "two: echo", "two__echo", "number 2"])
async def test_of_two_servers_that_can_do_it_the_person_chooses_one(reply):
    talk = Talk(BUILT_IN + TWO)
    said, calls = await talk.say("echo hello")
    assert QUESTION in said
    assert calls == []
    assert (await talk.say(reply))[1] == [("two__echo", {"message": "hello"})]


async def test_a_server_that_is_named_with_the_request_is_not_asked_about():
    assert await first_call("use echo of two: hello", BUILT_IN + TWO) == ("two__echo", {"message": "hello"})


async def test_of_two_tools_of_a_name_the_one_that_takes_what_was_said_is_meant():
    tools = [tool("one__echo", "Echoes"), TWO[1]]
    assert await first_call("use echo to say hello world", tools) == ("two__echo", {"message": "hello world"})


@pytest.mark.parametrize("reply", ["none of them", "no", "never mind"])
async def test_a_choice_can_be_declined(reply):
    talk = Talk(BUILT_IN + TWO)
    await talk.say("echo hello")
    said, calls = await talk.say(reply)
    assert (said, calls) == ("All right, I leave it at that.", [])


async def test_another_request_instead_of_a_choice_is_a_request():
    talk = Talk(BUILT_IN + TWO)
    await talk.say("echo hello")
    assert (await talk.say("read a.txt"))[1] == [("read_file", {"path": "a.txt"})]


async def test_what_is_missing_is_asked_for_after_the_choice_one_by_one():
    tools = [
        msgspec.structs.replace(
            tool(f"{server}__add", "Adds two numbers", "a b", a={"type": "number"}, b={"type": "number"}),
            title=f"{server}: add",
        )
        for server in ("one", "two")
    ]
    talk = Talk(tools)
    assert "Which of these do you mean?" in (await talk.say("use add"))[0]
    assert "To use `one: add` I need `a`" in (await talk.say("1"))[0]
    assert "To use `one: add` I need `b`" in (await talk.say("3"))[0]
    assert (await talk.say("four"))[1] == [("one__add", {"a": 3, "b": 4})]


async def test_a_doubtful_guess_is_made_on_a_yes_only():
    talk = Talk(TOOLS)
    said, calls = await talk.say("who allowed this?")
    assert "Do you mean `filesystem: List Allowed Directories`?" in said
    assert calls == []
    assert (await talk.say("yes"))[1] == [("filesystem__list_allowed_directories", {})]


async def test_a_doubtful_guess_is_dropped_on_a_no():
    talk = Talk(TOOLS)
    await talk.say("who allowed this?")
    assert await talk.say("no") == ("All right, I leave it at that.", [])


UNTOUCHED = """
import asyncio, json, pathlib, sys
import msgspec
from dragoman.assistant.models.guide import GuideModel
from dragoman.assistant.models.model import ModelRequest, ToolDefinition
from tests.assistant.guide import talking
from tests.assistant.guide.toolbox import BUILT_IN

source = pathlib.Path(talking.__file__).parent / "servers.json"
tools = BUILT_IN + msgspec.json.decode(source.read_bytes(), type=list[ToolDefinition])

async def main():
    for text in json.loads(sys.argv[1]):
        async for _ in GuideModel().start().reply(ModelRequest([talking.prompt(text)], tools)):
            pass
        print(text, any(name in sys.modules for name in ("dragoman.assistant.search.index", "numpy")))

asyncio.run(main())
"""


def test_the_search_is_not_loaded_for_what_words_decide():
    decided = ["read README.md", "run make test", "list src", "hello", "what time is it in Tokyo", "get the tiny image"]
    texts = json.dumps([*decided, "who allowed this?"])
    done = subprocess.run([sys.executable, "-c", UNTOUCHED, texts], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [*(f"{text} False" for text in decided), "who allowed this? True"]
