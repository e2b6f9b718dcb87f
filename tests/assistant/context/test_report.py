"""The output of `/context`."""

from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.servers import AgentServer
from dragoman.assistant.profile.settings import SearchSettings, Secret
from tests.assistant.context.offering import PLAY, SEARCHED, SONG, Choosing, offer


def rows(report):
    """Return the cells of all tables, without their headings."""
    lines = [line for line in report.splitlines() if line.startswith("| ") and not line.startswith("| what")]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]


def row(report, name):
    [found] = [each for each in rows(report) if f"`{name}`" in each[0]]
    return found


async def test_every_reason_for_inclusion_is_shown():
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
    context = Choosing(tools, profile)
    context.include("git/log")
    await context.turn(f"{SONG} @rule:tone")
    report = context.report()
    assert report.startswith("**Sent to the model:** 4 tools, 2 rules, 1 reference; about ")
    assert "Left out" not in report
    assert row(report, "open") == ("`open`", "`editor` (client)", "always", "")
    assert row(report, "log") == ("`log`", "`git` (agent)", "manually", "")
    assert row(report, "@rule:style") == ("`@rule:style`", "rules", "always", "")
    assert row(report, "@rule:tone") == ("`@rule:tone`", "rules", "mentioned", "")
    assert row(report, "@ref:music")[1:3] == ("references", "found by search")
    assert 0.8 < float(row(report, "@ref:music")[3]) <= 1
    assert row(report, "play_track")[1:3] == ("`music` (agent)", "found by search")
    assert 0.2 <= float(row(report, "play_track")[3]) <= 1
    assert report.endswith("Included manually, until `/exclude`: `git/log`.")


async def test_left_out_items_are_shown_with_reason_and_score():
    profile = Profile(
        references=(TextItem("api", "r", include="manual"),), search=SearchSettings(top_k=3, top_n=1, min_score=0.4)
    )
    songs = [offer("radio/play_song", "Play a song on the radio.", "agent"), offer("git/log", include="manual")]
    context = Choosing([*SEARCHED, *songs], profile)
    await context.turn("play a song on the radio for a customer")
    report = context.report()
    given, left = report.split("**Left out:**")
    assert [each[2] for each in rows(given)] == ["found by search"]
    scored = [(each[2], each[3]) for each in rows(left) if each[3]]
    assert [why for why, _ in scored] == ["others scored higher (`top_n` 1)", "score too low (`min_score` 0.4)"]
    assert scored == sorted(scored, key=lambda each: -float(each[1]))
    assert row(left, "log")[2] == "manual: `/include` adds one, `/include server:git` all"
    assert row(left, "@ref:api")[2] == "manual: its name in a prompt adds it to that, `/include` to the session"


async def test_before_the_first_turn_the_next_context_is_shown():
    context = Choosing([offer("git/log"), PLAY], Profile(rules=(TextItem("style", "r"),)))
    report = context.report()
    assert report.startswith("No turn has started yet. The next turn starts with this.")
    assert row(report, "log")[2] == "always"
    assert row(report, "play_track")[2] == "agent: added to prompts that need it"
    assert "The search includes" not in report


async def test_report_shows_the_last_turn_not_later_changes():
    context = Choosing([offer("git/log", include="manual")])
    await context.turn("hello")
    context.include("git/log")
    context.there = []
    assert row(context.report(), "log")[2].startswith("manual")
    assert "Included manually, but currently unavailable: `git/log`." in context.report()


async def test_thousand_tools_take_a_few_lines():
    always = [offer(f"big/tool{number}") for number in range(1000)]
    searched = [offer(f"huge/play{number}", "Play a song", "agent") for number in range(1000)]
    context = Choosing([*always, *searched])
    await context.turn("play a song")
    report = context.report()
    assert "1,008 tools" in report
    assert "and 992 more" in report
    assert len(report.splitlines()) < 30


async def test_items_far_from_the_prompt_share_a_row():
    near = [offer(f"near{number}/sell", "Sell a song", "agent") for number in range(8)]
    far = [offer(f"far{number}/repair", "Repair a machine", "agent") for number in range(10)]
    profile = Profile(references=(TextItem("brand", "Blue", include="agent"),), search=SearchSettings(min_score=0.99))
    context = Choosing([*near, *far], profile)
    await context.turn(SONG)
    *near_misses, (names, *rest) = rows(context.report())
    assert [each[1] for each in near_misses] == [f"`near{number}` (agent)" for number in range(5)]
    assert rest == ["", "less similar than the others", ""]
    assert names.startswith("`near5/sell`, `near6/sell`, `near7/sell`, `far0/repair`")
    assert names.endswith(" and 6 more")  # of three, ten and one reference, eight are named


async def test_server_names_cannot_break_the_table():
    context = Choosing([offer("a|b\n`c`/x|y\x1b")])
    await context.turn("hello")
    [line] = [line for line in context.report().splitlines() if "x" in line]
    assert line == r"| `x\|y\x1b` | `a\|b 'c'` (agent) | always |  |"


async def test_report_has_no_secrets_and_no_texts():
    canary = "canary-5f1e"
    server = AgentServer("git", "git-server", env={"TOKEN": Secret(canary)}, headers={"X": Secret(canary)})
    profile = Profile(
        rules=(TextItem("style", canary, canary),),
        references=(TextItem("api", canary, include="agent"),),
        servers=(server,),
    )
    tools = [offer("git/log", canary), offer("git/tag", canary, "agent"), offer("git/all", canary, "manual")]
    context = Choosing(tools, profile)
    assert canary not in context.report()
    await context.turn(f"use {canary} to play a song")
    assert canary not in context.report()
