"""What `/context` shows."""

import pytest

from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.servers import AgentServer
from dragoman.assistant.profile.settings import SearchSettings, Secret
from tests.assistant.context.offering import PLAY, SEARCHED, SONG, Choosing, offer
from tests.assistant.embedding import no_embedder


def rows(report):
    """The cells of all tables, without their heads."""
    lines = [line for line in report.splitlines() if line.startswith("| ") and not line.startswith("| what")]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]


def row(report, name):
    [found] = [each for each in rows(report) if f"`{name}`" in each[0]]
    return found


async def test_every_reason_for_being_given_is_shown(tmp_path):
    profile = Profile(
        rules=(TextItem("style", "r"), TextItem("tone", "r", include="manual")),
        references=(TextItem("music", SONG, include="agent"),),
        search=SearchSettings(top_n=1),
    )
    tools = [
        offer("builtin/read", origin="builtin"),
        offer("editor/open", origin="session"),
        offer("git/log", include="manual"),
        PLAY,
    ]
    context = Choosing(tmp_path, tools, profile)
    context.include("git/log")
    await context.turn(f"{SONG} @rule:tone")
    report = context.report()
    assert report.startswith("**Given to the model:** 4 tools, 2 rules, 1 reference; about ")
    assert "Left out" not in report
    assert row(report, "open") == ("`open`", "`editor` (client)", "always", "")
    assert row(report, "log") == ("`log`", "`git` (agent)", "by hand", "")
    assert row(report, "@rule:style") == ("`@rule:style`", "rules", "always", "")
    assert row(report, "@rule:tone") == ("`@rule:tone`", "rules", "mentioned", "")
    assert row(report, "@ref:music")[1:3] == ("references", "found by search")
    assert 0.9 < float(row(report, "@ref:music")[3]) <= 1
    assert row(report, "play_track")[1:3] == ("`music` (agent)", "found by search")
    assert 0.2 <= float(row(report, "play_track")[3]) <= 1
    assert report.endswith("Included by hand, until `/exclude`: `git/log`.")


async def test_what_was_left_out_is_shown_with_the_reason_and_the_score(tmp_path):
    profile = Profile(
        references=(TextItem("api", "r", include="manual"),), search=SearchSettings(top_k=3, top_n=1, min_score=0.15)
    )
    songs = [offer("radio/play_song", "Play a song on the radio.", "agent"), offer("git/log", include="manual")]
    context = Choosing(tmp_path, [*SEARCHED, *songs], profile)
    await context.turn(SONG)
    report = context.report()
    given, left = report.split("**Left out:**")
    assert [each[2] for each in rows(given)] == ["found by search"]
    scored = [(each[2], each[3]) for each in rows(left) if each[3]]
    assert [why for why, _ in scored] == ["others were nearer (`top_n` 1)", "not near enough (`min_score` 0.15)"]
    assert scored == sorted(scored, key=lambda each: -float(each[1]))
    assert row(left, "log")[2] == "manual: `/include` adds one, `/include server:git` all"
    assert row(left, "@ref:api")[2] == "manual: its name in a prompt adds it to that, `/include` to the session"


@pytest.mark.parametrize(("load", "words"), [(None, "by meaning and by words"), (no_embedder, "by words only")])
async def test_how_the_search_went_is_shown(tmp_path, load, words):
    context = Choosing(tmp_path, SEARCHED, load=load)
    await context.turn(SONG)
    assert f"The search went {words}: up to 8 tools" in context.report()


async def test_before_the_first_turn_it_shows_what_the_next_would_begin_with(tmp_path):
    context = Choosing(tmp_path, [offer("git/log"), PLAY], Profile(rules=(TextItem("style", "r"),)))
    report = context.report()
    assert report.startswith("There was no turn yet. The next one begins with this.")
    assert row(report, "log")[2] == "always"
    assert row(report, "play_track")[2] == "agent: comes with a prompt that needs it"
    assert "The search went" not in report


async def test_it_shows_the_last_turn_and_not_what_happened_since(tmp_path):
    context = Choosing(tmp_path, [offer("git/log", include="manual")])
    await context.turn("hello")
    context.include("git/log")
    context.there = []
    assert row(context.report(), "log")[2].startswith("manual")
    assert "Included by hand, but not there at the moment: `git/log`." in context.report()


async def test_a_thousand_tools_are_a_few_lines(tmp_path):
    always = [offer(f"big/tool{number}") for number in range(1000)]
    searched = [offer(f"huge/play{number}", "Play a song", "agent") for number in range(1000)]
    context = Choosing(tmp_path, [*always, *searched])
    await context.turn(SONG)
    report = context.report()
    assert "1,008 tools" in report
    assert "and 992 more" in report
    assert len(report.splitlines()) < 30


async def test_what_was_far_from_the_prompt_shares_a_row(tmp_path):
    near = [offer(f"near{number}/sell", "Sell a song", "agent") for number in range(8)]
    far = [offer(f"far{number}/repair", "Repair a machine", "agent") for number in range(10)]
    profile = Profile(references=(TextItem("brand", "Blue", include="agent"),), search=SearchSettings(min_score=0.99))
    context = Choosing(tmp_path, [*near, *far], profile, load=no_embedder)
    await context.turn(SONG)
    *near_misses, (names, *rest) = rows(context.report())
    assert [each[1] for each in near_misses] == [f"`near{number}` (agent)" for number in range(5)]
    assert rest == ["", "further off", ""]
    assert names.startswith("`near5/sell`, `near6/sell`, `near7/sell`, `far0/repair`")
    assert names.endswith(" and 6 more")  # of three, ten and a reference, eight are named


async def test_names_of_servers_cannot_break_the_table(tmp_path):
    context = Choosing(tmp_path, [offer("a|b\n`c`/x|y\x1b")])
    await context.turn("hello")
    [line] = [line for line in context.report().splitlines() if "x" in line]
    assert line == r"| `x\|y\x1b` | `a\|b 'c'` (agent) | always |  |"


async def test_no_secret_and_no_text_is_in_it(tmp_path):
    canary = "canary-5f1e"
    server = AgentServer("git", "git-server", env={"TOKEN": Secret(canary)}, headers={"X": Secret(canary)})
    profile = Profile(
        rules=(TextItem("style", canary, canary),),
        references=(TextItem("api", canary, include="agent"),),
        servers=(server,),
    )
    tools = [offer("git/log", canary), offer("git/tag", canary, "agent"), offer("git/all", canary, "manual")]
    context = Choosing(tmp_path, tools, profile)
    assert canary not in context.report()
    await context.turn(f"use {canary} to play a song")
    assert canary not in context.report()
