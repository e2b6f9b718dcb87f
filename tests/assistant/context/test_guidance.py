"""The rules and references that a model gets, and their order."""

import re

import pytest

from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.settings import SearchSettings
from tests.assistant.context.offering import Choosing

RELEASES = TextItem(
    "releases",
    "# Versions\n\nVersions are numbers.\n\nA release is published by pushing a tag to the main branch.",
    include="agent",
)
COLOURS = TextItem("colours", "Buttons are blue, and warnings are orange.", include="agent")


def given(context):
    return re.findall(r'^<(?:rule|reference) name="(.*)">$', context.instructions(), re.MULTILINE)


async def test_nothing_is_added_without_rules_and_references():
    context = Choosing()
    assert context.instructions() == ""
    await context.turn("hello")
    assert context.instructions() == ""


async def test_guidance_is_sorted_by_priority_then_kind_then_name():
    rules = (TextItem("late", "r", priority=900), TextItem("b", "r"), TextItem("a", "r"))
    references = (TextItem("aa", "r"), TextItem("first", "r", priority=1))
    context = Choosing(profile=Profile(rules=rules, references=references))
    await context.turn("hello")
    assert given(context) == ["first", "a", "b", "aa", "late"]


async def test_model_gets_labelled_rules_and_references_unchanged():
    profile = Profile(rules=(TextItem("style", "Be brief.\n", "for people"),), references=(TextItem("api", "GET /x"),))
    context = Choosing(profile=profile)
    await context.turn("hello")
    assert '<rule name="style">\nBe brief.\n</rule>' in context.instructions()
    assert '<reference name="api">\nGET /x\n</reference>' in context.instructions()
    assert "for people" not in context.instructions()


async def test_mention_adds_a_text_for_one_turn():
    profile = Profile(rules=(TextItem("x", "r", include="manual"),), references=(TextItem("x", "r", include="manual"),))
    context = Choosing(profile=profile)
    await context.turn("hello", "as @ref:x says")
    assert "<reference" in context.instructions()
    assert "<rule" not in context.instructions()
    assert context.notices == []
    await context.turn("hello")
    assert context.instructions() == ""


async def test_mention_ignores_case_unless_another_name_matches():
    profile = Profile(rules=tuple(TextItem(name, "r", include="manual") for name in ("Style", "tests", "Tests")))
    context = Choosing(profile=profile)
    await context.turn("@rule:style and @rule:tests")
    assert given(context) == ["Style", "tests"]


@pytest.mark.parametrize(
    ("mention", "hint"),
    [
        ("@rule:styel", " Did you mean `@rule:style`?"),
        ("@ref:style", " Did you mean `@rule:style`?"),
        ("@rule:zzz", ""),
    ],
)
async def test_unknown_mention_adds_a_notice_and_the_turn_continues(mention, hint):
    profile = Profile(rules=(TextItem("style", "r", include="manual"), TextItem("tests", "r")))
    context = Choosing(profile=profile)
    await context.turn(f"as {mention} says")
    assert context.notices == [f"`{mention}` does not exist here, so it added nothing.{hint}"]
    assert given(context) == ["tests"]


async def test_included_text_stays_for_the_session():
    profile = Profile(
        rules=(TextItem("style", "r", include="manual"),), references=(TextItem("api", "r", include="agent"),)
    )
    context = Choosing(profile=profile)
    context.include("rule:style")
    context.include("@ref:api")
    assert given(context) == ["style", "api"]
    await context.turn("hello")
    assert given(context) == ["style", "api"]
    context.exclude("style")
    await context.turn("hello")
    assert given(context) == ["api"]


async def test_agent_mode_text_is_found_by_any_of_its_paragraphs():
    profile = Profile(rules=(COLOURS,), references=(RELEASES,), search=SearchSettings(top_n=1))
    context = Choosing(profile=profile)
    await context.turn("How do I publish a new release?")
    assert given(context) == ["releases"]
    assert "Versions are numbers." in context.instructions()
    await context.turn("which colours do the buttons have?")
    assert given(context) == ["colours"]


async def test_text_is_found_by_its_description():
    terse = TextItem("x1", "0 3 * * *", "When backups of the database run", include="agent")
    context = Choosing(profile=Profile(references=(terse, COLOURS), search=SearchSettings(top_n=1)))
    await context.turn("at what hour do we save the database?")
    assert given(context) == ["x1"]


async def test_mentioned_texts_do_not_displace_found_ones():
    context = Choosing(profile=Profile(references=(RELEASES, COLOURS), search=SearchSettings(top_n=1)))
    await context.turn("Publish a release, with buttons as in @ref:colours")
    assert given(context) == ["colours", "releases"]


async def test_changed_agent_file_applies_from_the_next_turn():
    context = Choosing(profile=Profile(rules=(TextItem("old", "r"),)))
    await context.turn("hello")
    context.file = Profile(rules=(TextItem("new", "r"),))
    assert given(context) == ["old"]
    await context.turn("hello")
    assert given(context) == ["new"]
