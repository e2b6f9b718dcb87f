"""What a person adds and takes back, and how it is named."""

import pytest

from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.servers import AgentServer, ToolSettings
from dragoman.errors import InvalidParams
from tests.assistant.context.offering import Choosing, offer

TOOLS = [
    offer("git/log", include="manual"),
    offer("git/tag", include="manual"),
    offer("hub/log", include="agent"),
    offer("editor/open", origin="session"),
]
PROFILE = Profile(
    rules=(TextItem("style", "r", include="manual"), TextItem("tests", "r"), TextItem("tag", "r", include="manual")),
    references=(TextItem("api", "r", include="agent"),),
    servers=(AgentServer("slow", "slow-server", every_tool=ToolSettings("manual")),),
)


@pytest.fixture
def context(tmp_path):
    return Choosing(tmp_path, TOOLS, PROFILE)


def refusal(act, what):
    with pytest.raises(InvalidParams) as refused:
        act(what)
    return refused.value.problem


@pytest.mark.parametrize(
    ("spoken", "key"),
    [
        ("git/log", "git/log"),
        ("git__log", "git/log"),
        ("GIT/Log", "git/log"),
        (" `git/log` ", "git/log"),
        ("rule:style", "rule:style"),
        ("@rule:style", "rule:style"),
        ("style", "rule:style"),
        ("api", "ref:api"),
        ("git", "server:git"),
        ("server:git", "server:git"),
        ("server:slow", "server:slow"),
    ],
)
def test_things_are_found_by_the_names_that_people_use(context, spoken, key):
    assert context.include(spoken) == f"`{key}` is included from the next turn on, until `/exclude {key}`."
    assert context.included == [key]
    assert context.exclude(spoken) == f"`{key}` is no longer included by hand."
    assert context.included == []


def test_a_name_of_several_things_is_asked_about(context):
    assert refusal(context.include, "log") == "`log` may be `git/log`, `hub/log`; say which of them"
    assert refusal(context.include, "tag") == "`tag` may be `git/tag`, `rule:tag`; say which of them"
    assert context.included == []


@pytest.mark.parametrize("act", ["include", "exclude"])
def test_a_name_of_nothing_is_refused_with_a_suggestion(context, act):
    do = getattr(context, act)
    assert refusal(do, "rule:styel") == "there is no `rule:styel` here; did you mean `rule:style`?"
    assert refusal(do, "git/lgo") == "there is no `git/lgo` here; did you mean `git/log`?"
    assert refusal(do, "logg") == "there is no `logg` here; did you mean `git/log`, `hub/log`?"
    assert "SERVER/TOOL, server:NAME, rule:NAME or ref:NAME" in refusal(do, "qqqqqq")
    assert refusal(do, "  ").startswith("say what: SERVER/TOOL")


def test_what_is_there_already_is_not_added(context):
    assert context.include("editor/open") == "`editor/open` is in every turn already; there is nothing to add."
    assert "already" in context.include("server:editor")
    assert "already" in context.include("rule:tests")
    assert context.included == []
    context.include("style")
    assert context.include("style") == "`rule:style` is included already."
    assert context.included == ["rule:style"]


def test_what_is_in_every_turn_cannot_be_taken_back(context):
    expected = "`rule:tests` is in every turn, because its include mode is `always`"
    assert refusal(context.exclude, "rule:tests") == expected
    assert "always" in refusal(context.exclude, "editor/open")


def test_a_tool_that_came_with_its_server_goes_with_it(context):
    context.include("server:git")
    assert "came with `server:git`" in refusal(context.exclude, "git/log")
    context.exclude("server:git")
    assert context.exclude("git/log") == "`git/log` was not included by hand; there is nothing to take back."


def test_what_is_gone_can_be_taken_back_still(context):
    context.include("git/log")
    context.there = []
    assert context.exclude("@git/log") == "`git/log` is no longer included by hand."


def test_a_name_is_shown_without_what_would_change_the_screen(context):
    shown = refusal(context.include, "x\x1b[31m`\u202ey" + "z" * 500)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count("`") == 4  # those around the name, and around /context
    assert len(shown) < 400
