"""Which tools a small model gets; no model is loaded for that."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dragoman.assistant.models.local.chat import TOOLS_IN_FRONT, Chat, choose_tools, tools_in_front
from dragoman.assistant.models.message import AssistantMessage, SummaryMessage, ToolMessage, ToolResult, ToolUse
from dragoman.assistant.models.model import ModelRequest, ToolDefinition
from dragoman.assistant.models.tool_index import ToolIndex
from tests.assistant.embedding import no_embedder
from tests.assistant.local.asking import prompt, tool

SERVERS = Path(__file__).parent.parent / "guide" / "servers.json"
REAL = msgspec.json.decode(SERVERS.read_bytes(), type=list[ToolDefinition])
READ = tool("read_file", "Read a file")


@pytest.fixture(params=["semantic", "lexical"])
def index(request):
    return ToolIndex() if request.param == "semantic" else ToolIndex(no_embedder)


def names(tools):
    return {each.name for each in tools}


WANTED = [
    ("What time is it in Tokyo?", {"time__get_current_time"}),
    ("Convert 15:00 from Berlin to the timezone of New York", {"time__convert_time"}),
    ("Give me the sum of 3 and 4", {"everything__get-sum"}),
    ("Show me the commit log of this repository", {"git__git_log"}),
    ("Which changes are staged for commit?", {"git__git_diff_staged", "git__git_diff_unstaged"}),
    ("Create the directory build/out", {"filesystem__create_directory"}),
    ("Move a.txt to b.txt, it is only one file", {"filesystem__move_file"}),
    ("Print all environment variables", {"everything__get-env"}),
]


@pytest.mark.parametrize(("text", "wanted"), WANTED)
async def test_of_the_tools_of_real_servers_those_that_the_prompt_needs_are_in_front(index, text, wanted):
    chosen = await choose_tools(REAL, text, (), index)
    assert len(chosen) == TOOLS_IN_FRONT
    assert wanted <= names(chosen)


async def test_they_stay_in_the_order_that_they_were_given_in(index):
    chosen = await choose_tools(REAL, "the time in Tokyo", (), index)
    assert chosen == [each for each in REAL if each in chosen]


async def test_as_many_are_in_front_when_nothing_is_near(index):
    assert len(await choose_tools(REAL, "", (), index)) == TOOLS_IN_FRONT
    assert len(await choose_tools(REAL, "qwxz", (), index)) == TOOLS_IN_FRONT


async def test_tools_that_this_turn_used_stay_in_front_beside_those_that_were_found(index):
    tools = [*REAL, READ]
    asked = [prompt("What time is it in Tokyo?"), AssistantMessage(tool_uses=[ToolUse("1", "read_file", {})])]
    found = await tools_in_front(ModelRequest(asked[:1], tools), index)
    assert READ not in found
    answered = [*asked, ToolMessage([ToolResult("1", "nothing")])]
    assert await tools_in_front(ModelRequest(answered, tools), index) == [*found, READ]


async def test_tools_of_turns_before_are_not_kept(index):
    tools = [*REAL, READ]
    before = [prompt("hm"), AssistantMessage(tool_uses=[ToolUse("1", "read_file", {})])]
    asked = [*before, ToolMessage([ToolResult("1", "x")]), prompt("What time is it in Tokyo?")]
    assert READ not in await tools_in_front(ModelRequest(asked, tools), index)


async def test_a_tool_that_was_used_and_is_gone_is_not_missed(index):
    asked = [prompt("What time is it?"), AssistantMessage(tool_uses=[ToolUse("1", "gone", {})])]
    assert len(await tools_in_front(ModelRequest(asked, REAL), index)) == TOOLS_IN_FRONT


async def test_the_prompt_in_a_summary_is_what_is_searched_for(index):
    summary = SummaryMessage("they greeted", prompt("What time is it in Tokyo?").content)
    assert "time__get_current_time" in names(await tools_in_front(ModelRequest([summary], REAL), index))


async def test_the_model_is_told_of_those_in_front_only(index):
    request = ModelRequest([prompt("What time is it in Tokyo?")], REAL)
    chat = Chat(request, await tools_in_front(request, index))
    system = chat.write(100_000)[0]["content"]
    assert [line.split(":")[0] for line in system.splitlines() if line.startswith("- ")] == [
        f"- {each.name}" for each in chat.tools
    ]


FEW = """
import asyncio, sys
from dragoman.assistant.models.tool_index import ToolIndex
from dragoman.assistant.models.local.chat import TOOLS_IN_FRONT, choose_tools
from tests.assistant.local.asking import tool

tools = [tool(f"thing_{index}", "does a thing") for index in range(TOOLS_IN_FRONT)]
assert asyncio.run(choose_tools(tools, "do a thing", (), ToolIndex())) == tools
print("dragoman.assistant.search.index" in sys.modules)
"""


def test_few_tools_are_all_in_front_and_the_search_is_not_loaded():
    done = subprocess.run([sys.executable, "-c", FEW], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
