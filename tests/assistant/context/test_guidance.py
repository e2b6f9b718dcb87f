"""Which rules and references a model is given, and in which order."""

import re

import pytest

from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.settings import SearchSettings
from tests.assistant.context.offering import Choosing
from tests.assistant.embedding import no_embedder

RELEASES = TextItem(
    "releases",
    "# Versions\n\nVersions are numbers.\n\nA release is published by pushing a tag to the main branch.",
    include="agent",
)
COLOURS = TextItem("colours", "Buttons are blue, and warnings are orange.", include="agent")


def given(context):
    return re.findall(r'^<(?:rule|reference) name="(.*)">$', context.instructions(), re.MULTILINE)


async def test_without_rules_and_references_there_is_nothing_to_say(tmp_path):
    context = Choosing(tmp_path)
    assert context.instructions() == ""
    await context.turn("hello")
    assert context.instructions() == ""


async def test_they_stand_by_priority_then_rules_before_references_then_by_name(tmp_path):
    rules = (TextItem("late", "r", priority=900), TextItem("b", "r"), TextItem("a", "r"))
    references = (TextItem("aa", "r"), TextItem("first", "r", priority=1))
    context = Choosing(tmp_path, profile=Profile(rules=rules, references=references))
    await context.turn("hello")
    assert given(context) == ["first", "a", "b", "aa", "late"]


async def test_the_model_is_told_which_is_which_in_the_words_of_the_file(tmp_path):
    profile = Profile(rules=(TextItem("style", "Be brief.\n", "for people"),), references=(TextItem("api", "GET /x"),))
    context = Choosing(tmp_path, profile=profile)
    await context.turn("hello")
    assert '<rule name="style">\nBe brief.\n</rule>' in context.instructions()
    assert '<reference name="api">\nGET /x\n</reference>' in context.instructions()
    assert "for people" not in context.instructions()


async def test_a_mention_adds_a_text_for_one_turn(tmp_path):
    profile = Profile(rules=(TextItem("x", "r", include="manual"),), references=(TextItem("x", "r", include="manual"),))
    context = Choosing(tmp_path, profile=profile)
    await context.turn("hello", "as @ref:x says")
    assert "<reference" in context.instructions()
    assert "<rule" not in context.instructions()
    assert context.notices == []
    await context.turn("hello")
    assert context.instructions() == ""


async def test_a_mention_may_be_written_in_any_case_unless_that_is_another_one(tmp_path):
    profile = Profile(rules=tuple(TextItem(name, "r", include="manual") for name in ("Style", "tests", "Tests")))
    context = Choosing(tmp_path, profile=profile)
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
async def test_a_mention_of_what_is_not_there_is_noticed_and_the_turn_goes_on(tmp_path, mention, hint):
    profile = Profile(rules=(TextItem("style", "r", include="manual"), TextItem("tests", "r")))
    context = Choosing(tmp_path, profile=profile)
    await context.turn(f"as {mention} says")
    assert context.notices == [f"There is no `{mention}` here, so it added nothing.{hint}"]
    assert given(context) == ["tests"]


async def test_a_person_adds_a_text_for_the_session(tmp_path):
    profile = Profile(
        rules=(TextItem("style", "r", include="manual"),), references=(TextItem("api", "r", include="agent"),)
    )
    context = Choosing(tmp_path, profile=profile)
    context.include("rule:style")
    context.include("@ref:api")
    assert given(context) == ["style", "api"]
    await context.turn("hello")
    assert given(context) == ["style", "api"]
    context.exclude("style")
    await context.turn("hello")
    assert given(context) == ["api"]


@pytest.mark.parametrize("load", [None, no_embedder])
async def test_a_text_of_mode_agent_is_found_by_one_of_its_paragraphs(tmp_path, load):
    profile = Profile(rules=(COLOURS,), references=(RELEASES,), search=SearchSettings(top_n=1))
    context = Choosing(tmp_path, profile=profile, load=load)
    await context.turn("How do I publish a new release?")
    assert given(context) == ["releases"]
    assert "Versions are numbers." in context.instructions()
    await context.turn("which colours do the buttons have?")
    assert given(context) == ["colours"]


async def test_a_text_is_found_by_its_description(tmp_path):
    terse = TextItem("x1", "0 3 * * *", "When backups of the database run", include="agent")
    context = Choosing(tmp_path, profile=Profile(references=(terse, COLOURS), search=SearchSettings(top_n=1)))
    await context.turn("at what hour do we save the database?")
    assert given(context) == ["x1"]


async def test_mentioned_texts_take_no_place_of_those_that_are_found(tmp_path):
    context = Choosing(tmp_path, profile=Profile(references=(RELEASES, COLOURS), search=SearchSettings(top_n=1)))
    await context.turn("Publish a release, with buttons as in @ref:colours")
    assert given(context) == ["colours", "releases"]


async def test_another_agent_file_counts_from_the_next_turn_on(tmp_path):
    context = Choosing(tmp_path, profile=Profile(rules=(TextItem("old", "r"),)))
    await context.turn("hello")
    context.file = Profile(rules=(TextItem("new", "r"),))
    assert given(context) == ["old"]
    await context.turn("hello")
    assert given(context) == ["new"]
