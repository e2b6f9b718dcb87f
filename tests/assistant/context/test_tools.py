"""Which tools a model is given, by include mode and by search."""

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
    Counting,
    offer,
)
from tests.assistant.embedding import no_embedder
from tests.assistant.tools.working import working


def names(*offers):
    return [each.tool.definition.name for each in offers]


def top(number, **more):
    return Profile(search=SearchSettings(top_n=number, **more))


async def test_built_in_tools_come_first_then_the_sessions_then_the_agents(tmp_path):
    agents, sessions = offer("git/log"), offer("editor/open", origin="session")
    async with working(tmp_path) as place:
        built_in = [ToolOffer(f"builtin/{name}", tool, "builtin") for name, tool in place.tools.items()]
        context = Choosing(tmp_path, [agents, sessions, *built_in])
        assert await context.turn("hello") == [*place.tools, "editor__open", "git__log"]
        assert (await context.tools())["read_file"] is place.tools["read_file"]


async def test_a_manual_tool_is_given_once_a_person_has_added_it(tmp_path):
    context = Choosing(tmp_path, [offer("git/log", include="manual"), offer("git/tag", include="manual")])
    assert await context.turn("show me the git log") == []
    context.include("git/log")
    assert await context.turn("hello") == ["git__log"]
    context.exclude("git/log")
    assert await context.turn("hello") == []


async def test_all_tools_of_a_server_can_be_added_at_once(tmp_path):
    tools = [offer("git/log", include="manual"), offer("git/tag", include="agent"), offer("hub/log", include="manual")]
    context = Choosing(tmp_path, tools)
    context.include("server:git")
    assert await context.turn("hello") == ["git__log", "git__tag"]


async def test_what_was_added_is_given_when_its_server_comes_back(tmp_path):
    context = Choosing(tmp_path)
    context.included = ["git/log"]
    assert await context.turn("hello") == []
    context.there = [offer("git/log", include="manual")]
    assert list(await context.tools()) == ["git__log"]


@pytest.mark.parametrize("load", [None, no_embedder])
async def test_a_tool_of_mode_agent_is_given_when_the_search_finds_it(tmp_path, load):
    context = Choosing(tmp_path, SEARCHED, top(1), load=load)
    assert await context.turn(SONG) == names(PLAY)
    assert await context.turn("draft an invoice for that customer") == names(INVOICE)


async def test_a_tool_is_found_by_what_it_means_with_and_without_vectors(tmp_path):
    assert (await Choosing(tmp_path, SEARCHED, top(1)).turn(RAIN)) == names(FORECAST)
    assert (await Choosing(tmp_path, SEARCHED, top(1), load=no_embedder).turn(RAIN)) == names(FORECAST)


async def test_what_is_not_near_enough_is_left_out(tmp_path):
    assert await Choosing(tmp_path, SEARCHED, top(5, min_score=0.99)).turn(SONG) == []
    assert len(await Choosing(tmp_path, SEARCHED, top(2, min_score=0.0)).turn(SONG)) == 2


async def test_a_prompt_without_words_finds_nothing(tmp_path):
    context = Choosing(tmp_path, SEARCHED)
    await context.begin_turn([v1.ImageContent(data="", mime_type="image/png")])
    assert not await context.tools()


@pytest.mark.parametrize("answer", ["yes", "go on, please", ""])
async def test_a_short_answer_keeps_the_tools_of_the_question(tmp_path, answer):
    context = Choosing(tmp_path, SEARCHED, top(1))
    await context.turn(RAIN)
    assert await context.turn(answer) == names(FORECAST)
    assert await context.turn(answer) == names(FORECAST)
    assert await context.turn("draft an invoice for that customer") == names(INVOICE)


async def test_a_session_tool_is_searched_only_when_its_client_wants_it(tmp_path):
    always = offer("editor/play", "Start playback of a song.", origin="session")
    searched = offer("phone/call", "Call a person.", "agent", origin="session")
    context = Choosing(tmp_path, [always, searched, PLAY], top(1))
    assert await context.turn(SONG) == names(always, PLAY)


async def test_tools_added_by_hand_take_no_place_of_those_that_are_found(tmp_path):
    context = Choosing(tmp_path, SEARCHED, top(1, min_score=0.0))
    context.include("music/play_track")
    assert len(await context.turn(SONG)) == 2


async def test_references_take_no_place_of_tools(tmp_path):
    songs = tuple(TextItem(f"song{number}", SONG, include="agent") for number in range(5))
    context = Choosing(tmp_path, SEARCHED, Profile(references=songs, search=SearchSettings(top_n=2)))
    assert "music__play_track" in await context.turn(SONG)
    assert context.instructions().count("<reference") == 2


async def test_a_server_that_arrives_in_the_middle_of_a_turn_is_searched(tmp_path):
    context = Choosing(tmp_path, [COMMIT, INVOICE], top(1))
    await context.turn(SONG)
    context.there = SEARCHED
    assert "music__play_track" in await context.tools()


async def test_a_tool_that_was_given_stays_for_the_turn_and_no_longer(tmp_path):
    near, nearer = offer("radio/tune", "Play a radio station", "agent"), PLAY
    context = Choosing(tmp_path, [near], top(1))
    assert await context.turn(SONG) == names(near)
    context.there = [near, nearer]
    assert list(await context.tools()) == names(near, nearer)
    assert await context.turn(SONG) == names(nearer)


async def test_a_tool_whose_server_went_away_is_not_given_any_more(tmp_path):
    context = Choosing(tmp_path, [FORECAST, offer("git/log")], top(1))
    assert await context.turn(RAIN) == ["weather__get_forecast", "git__log"]
    context.there = [offer("git/log")]
    assert list(await context.tools()) == ["git__log"]


async def test_the_search_runs_again_only_when_the_tools_to_search_have_changed(tmp_path):
    embedder = Counting()
    context = Choosing(tmp_path, SEARCHED, top(1), load=lambda: embedder)
    await context.turn(SONG)
    assert embedder.texts.count(SONG) == 1
    context.there = [*SEARCHED, offer("git/log"), offer("git/tag", include="manual")]
    assert list(await context.tools()) == ["music__play_track", "git__log"]
    assert embedder.texts.count(SONG) == 1
    context.there = [*SEARCHED, offer("git/log", "Show the log.", "agent")]
    await context.tools()
    assert embedder.texts.count(SONG) == 2


async def test_a_cancelled_search_leaves_nothing_behind(tmp_path):
    context = Choosing(tmp_path, SEARCHED, top(1))
    turn = asyncio.create_task(context.turn(RAIN))
    await asyncio.sleep(0)  # lets it begin
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert await context.turn(SONG) == names(PLAY)


async def test_the_servers_own_words_are_searched_where_the_model_has_others(tmp_path):
    plain = offer("a/run", "Does a thing", "agent")
    spoken = offer("b/run", "Does a thing", "agent", description="Play a song")
    context = Choosing(tmp_path, [plain, spoken], top(1), load=no_embedder)
    assert await context.turn(SONG) == names(spoken)


async def test_of_two_tools_with_one_name_the_first_is_given_and_it_is_said_once(tmp_path):
    first, second = offer("git/log"), ToolOffer("other/log", offer("git/log").tool, "agent", server="other")
    context = Choosing(tmp_path, [first, second])
    assert await context.turn("hello") == ["git__log"]
    assert (await context.tools())["git__log"] is first.tool
    await context.turn("hello")
    [notice] = context.notices
    assert "`other/log` is left out" in notice
    assert "`git/log`" in notice
    assert "the model knows `git/log` by its name" in context.report()


async def test_that_the_better_search_is_missing_is_said_once_and_only_where_it_matters(tmp_path):
    context = Choosing(tmp_path, [offer("git/log")], load=no_embedder)
    await context.turn(SONG)
    assert context.notices == []
    context.there = SEARCHED
    context.file = Profile(rules=(TextItem("style", "Be brief", include="agent"),))
    await context.turn(SONG)
    await context.turn(RAIN)
    [notice] = context.notices
    assert "[search]" in notice


async def test_tools_are_there_before_the_first_turn(tmp_path):
    context = Choosing(tmp_path, [offer("git/log"), *SEARCHED])
    assert list(await context.tools()) == ["git__log"]


def test_a_session_without_searched_things_never_loads_the_search(tmp_path):
    program = f"""
import asyncio, pathlib, sys
from dragoman.assistant.context import ModelContext
from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.protocol import v1

async def main():
    profile = Profile(rules=(TextItem("style", "Be brief."), TextItem("more", "Be kind.", include="manual")))
    context = ModelContext(pathlib.Path({str(tmp_path)!r}), lambda: [], lambda: profile)
    await context.begin_turn([v1.TextContent(text="play a song, as @rule:more says")])
    await context.tools()
    context.instructions()
    context.report()

asyncio.run(main())
print([name for name in sys.modules if name.startswith(("dragoman.assistant.search", "numpy", "sqlite3"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
    assert list(tmp_path.iterdir()) == []
