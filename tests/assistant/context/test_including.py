"""Including and excluding items by name."""

import pytest

from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.servers import AgentServer, ToolSettings
from dragoman.errors import InvalidParamsError
from tests.assistant.context.offering import Choosing, offer
from tests.table import each_row

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
    return Choosing(TOOLS, PROFILE)


def refusal(act, what):
    with pytest.raises(InvalidParamsError) as refused:
        act(what)
    return refused.value.problem


@each_row(
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
def test_names_in_all_usual_forms_are_found(context, spoken, key):
    assert context.include(spoken) == f"`{key}` is included from the next turn on, until `/exclude {key}`."
    assert context.included == [key]
    assert context.exclude(spoken) == f"`{key}` is no longer included manually."
    assert context.included == []


def test_ambiguous_name_asks_the_user_to_choose(context):
    assert refusal(context.include, "log") == "`log` may be `git/log`, `hub/log`; choose one"
    assert refusal(context.include, "tag") == "`tag` may be `git/tag`, `rule:tag`; choose one"
    assert context.included == []


@pytest.mark.parametrize("act", ["include", "exclude"])
def test_unknown_name_is_refused_with_a_suggestion(context, act):
    do = getattr(context, act)
    assert refusal(do, "rule:styel") == "`rule:styel` does not exist here; did you mean `rule:style`?"
    assert refusal(do, "git/lgo") == "`git/lgo` does not exist here; did you mean `git/log`?"
    assert refusal(do, "logg") == "`logg` does not exist here; did you mean `git/log`, `hub/log`?"
    assert "SERVER/TOOL, server:NAME, rule:NAME, ref:NAME or skill:NAME" in refusal(do, "qqqqqq")
    assert refusal(do, "  ").startswith("expected SERVER/TOOL")


def test_item_that_is_already_included_is_not_added(context):
    assert context.include("editor/open") == "`editor/open` is already in every turn."
    assert "already" in context.include("server:editor")
    assert "already" in context.include("rule:tests")
    assert context.included == []
    context.include("style")
    assert context.include("style") == "`rule:style` is already included."
    assert context.included == ["rule:style"]


def test_item_of_every_turn_cannot_be_excluded(context):
    expected = "`rule:tests` is in every turn, because its include mode is `always`"
    assert refusal(context.exclude, "rule:tests") == expected
    assert "always" in refusal(context.exclude, "editor/open")


def test_tool_included_with_its_server_is_excluded_with_it(context):
    context.include("server:git")
    assert "came with `server:git`" in refusal(context.exclude, "git/log")
    context.exclude("server:git")
    assert context.exclude("git/log") == "`git/log` was not included manually, so there is nothing to undo."


def test_missing_item_can_still_be_excluded(context):
    context.include("git/log")
    context.there = []
    assert context.exclude("@git/log") == "`git/log` is no longer included manually."


def test_shown_name_has_no_control_characters(context):
    shown = refusal(context.include, "x\x1b[31m`\u202ey" + "z" * 500)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count("`") == 4  # around the name and around /context
    assert len(shown) < 400
