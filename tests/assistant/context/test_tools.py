"""The tools that a model gets, by include mode and by search."""

import asyncio
import subprocess
import sys

import pytest

from dragoman.assistant.context import ToolOffer
from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.settings import SearchSettings
from dragoman.protocol import v1
from tests.assistant.context.offering import (
    COMMIT,
    FORECAST,
    INVOICE,
    PLAY,
    RAIN,
    SEARCHED,
    SONG,
    Choosing,
    offer,
)
from tests.assistant.tools.working import working


def names(*offers):
    return [each.tool.definition.name for each in offers]


def top(number, **more):
    return Profile(search=SearchSettings(top_n=number, **more))


async def test_tools_are_ordered_builtin_then_session_then_agent(tmp_path):
    agents, sessions = offer("git/log"), offer("editor/open", origin="session")
    async with working(tmp_path) as place:
        built_in = [ToolOffer(f"builtin/{name}", tool, "builtin") for name, tool in place.tools.items()]
        context = Choosing([agents, sessions, *built_in])
        assert await context.turn("hello") == [*place.tools, "editor__open", "git__log"]
        assert (await context.tools())["read_file"] is place.tools["read_file"]


async def test_manual_tool_is_sent_once_the_user_adds_it():
    context = Choosing([offer("git/log", include="manual"), offer("git/tag", include="manual")])
    assert await context.turn("show me the git log") == []
    context.include("git/log")
    assert await context.turn("hello") == ["git__log"]
    context.exclude("git/log")
    assert await context.turn("hello") == []


async def test_all_tools_of_a_server_can_be_added_together():
    tools = [offer("git/log", include="manual"), offer("git/tag", include="agent"), offer("hub/log", include="manual")]
    context = Choosing(tools)
    context.include("server:git")
    assert await context.turn("hello") == ["git__log", "git__tag"]


async def test_added_tools_are_sent_again_when_their_server_returns():
    context = Choosing()
    context.included = ["git/log"]
    assert await context.turn("hello") == []
    context.there = [offer("git/log", include="manual")]
    assert list(await context.tools()) == ["git__log"]


async def test_agent_mode_tool_is_sent_when_the_search_finds_it():
    context = Choosing(SEARCHED, top(1))
    assert await context.turn(SONG) == names(PLAY)
    assert await context.turn("draft an invoice for that customer") == names(INVOICE)


async def test_tool_is_found_by_meaning():
    assert (await Choosing(SEARCHED, top(1)).turn(RAIN)) == names(FORECAST)


async def test_distant_tools_are_left_out():
    assert await Choosing(SEARCHED, top(5, min_score=0.99)).turn(SONG) == []
    assert len(await Choosing(SEARCHED, top(2, min_score=0.0)).turn(f"{SONG}, then the invoice")) == 2


async def test_prompt_without_words_finds_nothing():
    context = Choosing(SEARCHED)
    await context.begin_turn([v1.ImageContent(data="", mime_type="image/png")])
    assert not await context.tools()


@pytest.mark.parametrize("answer", ["yes", "go on, please", ""])
async def test_short_answer_keeps_the_tools_of_the_question(answer):
    context = Choosing(SEARCHED, top(1))
    await context.turn(RAIN)
    assert await context.turn(answer) == names(FORECAST)
    assert await context.turn(answer) == names(FORECAST)
    assert await context.turn("draft an invoice for that customer") == names(INVOICE)


async def test_session_tool_is_searched_only_if_its_client_wants_it():
    always = offer("editor/play", "Start playback of a song.", origin="session")
    searched = offer("phone/call", "Call a person.", "agent", origin="session")
    context = Choosing([always, searched, PLAY], top(1))
    assert await context.turn(SONG) == names(always, PLAY)


async def test_manually_added_tools_do_not_displace_found_ones():
    context = Choosing(SEARCHED, top(1, min_score=0.0))
    context.include("music/play_track")
    assert len(await context.turn(f"{SONG}, then the invoice")) == 2


async def test_references_do_not_displace_tools():
    songs = tuple(TextItem(f"song{number}", SONG, include="agent") for number in range(5))
    context = Choosing(SEARCHED, Profile(references=songs, search=SearchSettings(top_n=2)))
    assert "music__play_track" in await context.turn(SONG)
    assert context.instructions().count("<reference") == 2


async def test_server_that_arrives_during_a_turn_is_searched():
    context = Choosing([COMMIT, INVOICE], top(1))
    await context.turn(SONG)
    context.there = SEARCHED
    assert "music__play_track" in await context.tools()


async def test_found_tool_stays_for_the_turn_only():
    near, nearer = offer("radio/tune", "Play a radio station", "agent"), PLAY
    context = Choosing([near], top(1))
    assert await context.turn(SONG) == names(near)
    context.there = [near, nearer]
    assert list(await context.tools()) == names(near, nearer)
    assert await context.turn(SONG) == names(nearer)


async def test_tool_of_a_removed_server_is_not_sent():
    context = Choosing([FORECAST, offer("git/log")], top(1))
    assert await context.turn(RAIN) == ["weather__get_forecast", "git__log"]
    context.there = [offer("git/log")]
    assert list(await context.tools()) == ["git__log"]


async def test_cancelled_search_leaves_no_state():
    context = Choosing(SEARCHED, top(1))
    turn = asyncio.create_task(context.turn(RAIN))
    await asyncio.sleep(0)  # let the search begin
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert await context.turn(SONG) == names(PLAY)


async def test_server_description_is_searched_even_if_the_model_gets_another():
    plain = offer("a/run", "Does a thing", "agent")
    spoken = offer("b/run", "Does a thing", "agent", description="Play a song")
    context = Choosing([plain, spoken], top(1))
    assert await context.turn(SONG) == names(spoken)


async def test_second_tool_of_the_same_name_is_dropped_with_one_notice():
    first, second = offer("git/log"), ToolOffer("other/log", offer("git/log").tool, "agent", server="other")
    context = Choosing([first, second])
    assert await context.turn("hello") == ["git__log"]
    assert (await context.tools())["git__log"] is first.tool
    await context.turn("hello")
    [notice] = context.notices
    assert "`other/log` is left out" in notice
    assert "`git/log`" in notice
    assert "`git/log` already has this name" in context.report()


async def test_tools_are_available_before_the_first_turn():
    context = Choosing([offer("git/log"), *SEARCHED])
    assert list(await context.tools()) == ["git__log"]


def test_session_without_searched_items_never_imports_the_search():
    program = """
import asyncio, sys
from dragoman.assistant.context import ModelContext
from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.protocol import v1

async def main():
    profile = Profile(rules=(TextItem("style", "Be brief."), TextItem("more", "Be kind.", include="manual")))
    context = ModelContext(lambda: [], lambda: profile)
    await context.begin_turn([v1.TextContent(text="play a song, as @rule:more says")])
    await context.tools()
    context.instructions()
    context.report()

asyncio.run(main())
print([name for name in sys.modules if name.startswith("dragoman.assistant.search")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
