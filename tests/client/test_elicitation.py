"""Elicitation: forms and pages that an agent shows to the user."""

import msgspec
import pytest

from dragoman.client.services.elicitation import accept, answer_with, cancel, decline, find_problems
from dragoman.errors import ErrorCode, InvalidParamsError
from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import ELICITATION_CREATE
from dragoman.protocol.unions import decode_hook

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "default": "Ada"},
        "size": {"type": "string", "enum": ["small", "large"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name"],
}


def asking(**more):
    params = {"sessionId": "s", "toolCallId": "c", "mode": "form", "message": "Who?", "requestedSchema": SCHEMA, **more}
    return decode_params(ELICITATION_CREATE, msgspec.json.encode(params), lenient=True)


def page(**more):
    params = {"requestId": 1, "mode": "url", "elicitationId": "e", "url": "https://x.example/a", "message": "Log in"}
    return decode_params(ELICITATION_CREATE, msgspec.json.encode({**params, **more}), lenient=True)


def schema_of(**properties):
    return msgspec.convert({"type": "object", "properties": properties}, v1.ElicitationSchema, dec_hook=decode_hook)


async def answer(reply, params=None):
    return await answer_with(lambda question: reply)(params or asking())


async def test_valid_form_is_sent():
    content = {"name": "Grace", "size": "large", "age": 85}
    assert await answer(accept(content)) == v1.ElicitationAcceptAction(content=content)


async def test_user_may_decline_or_cancel():
    assert await answer(decline()) == v1.ElicitationDeclineAction()
    assert await answer(cancel()) == v1.ElicitationCancelAction()


async def test_handler_gets_message_schema_and_defaults():
    seen = []

    async def elicit(question):
        seen.append(question)
        return accept(question.defaults)

    assert await answer_with(elicit)(asking()) == v1.ElicitationAcceptAction(content={"name": "Ada"})
    (question,) = seen
    assert (question.message, question.session_id, question.tool_call_id) == ("Who?", "s", "c")
    assert list(question.schema.properties) == ["name", "size", "age"]


async def test_agreed_page_is_answered_without_content():
    seen = []
    agree = answer_with(lambda question: seen.append(question) or accept({"token": "secret"}))
    assert await agree(page()) == v1.ElicitationAcceptAction()
    assert (seen[0].url, seen[0].elicitation_id, seen[0].schema) == ("https://x.example/a", "e", None)


async def test_unknown_elicitation_mode_is_refused():
    with pytest.raises(InvalidParamsError) as caught:
        await answer(accept(), asking(mode="hologram"))
    assert caught.value.code == ErrorCode.INVALID_PARAMS


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "name is missing"),
        (None, "name is missing"),
        ({"name": "Ada", "more": 1}, "more was not asked for"),
        ({"name": 5}, "name must be text"),
        ({"name": "A"}, "at least 2 characters"),
        ({"name": "Adelaide"}, "at most 5 characters"),
        ({"name": "Ada", "size": "huge"}, "one of small, large"),
        ({"name": "Ada", "age": -1}, "at least 0"),
        ({"name": "Ada", "age": 151}, "at most 150"),
        ({"name": "Ada", "age": True}, "whole number"),
        ({"name": "Ada", "age": 1.5}, "whole number"),
        ({"name": "Ada", "age": None}, "whole number"),
    ],
)
async def test_invalid_form_is_cancelled_and_logged(content, problem, caplog):
    assert await answer(accept(content)) == v1.ElicitationCancelAction()
    assert problem in caplog.text


CHOICES = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2}
TITLED = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}
ONE = {"type": "string", "oneOf": [{"const": "x", "title": "X"}]}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "boolean"}, [True, False], [1, "true", None]),
        ({"type": "number", "minimum": 0.5}, [0.5, 1, 7.25], [0.4, True, "1", float("nan"), float("inf")]),
        (CHOICES, [["a"], ["a", "b"]], [[], ["a", "b", "c"], ["d"], ["a", "a"], "a", [1], [["a"]]]),
        (TITLED, [["a"], []], [["b"]]),
        (ONE, ["x"], ["X", ""]),
        ({"type": "string", "format": "email"}, ["a@b.c"], ["a", "a@", "a b@c"]),
        ({"type": "string", "format": "uri"}, ["https://x/y", "urn:x"], ["x/y", "http://["]),
        ({"type": "string", "format": "date"}, ["2026-11-16"], ["16.11.2026", "2026-13-01"]),
        ({"type": "string", "format": "date-time"}, ["2026-11-16T01:02:03Z"], ["2026-11-16", "now"]),
        ({"type": "string", "pattern": "^[a-z]{2}$"}, ["ab"], ["abc", "A"]),
        ({"type": "hologram"}, [1, "x"], []),
    ],
)
def test_each_field_type_accepts_only_valid_values(schema, good, bad):
    form = schema_of(field=schema)
    assert [find_problems(form, {"field": value}) for value in good] == [[]] * len(good)
    assert all(find_problems(form, {"field": value}) for value in bad)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*$", "a*a*a*a*a*b", r"(a)\1", "(", "x" * 1000])
def test_slow_or_invalid_pattern_is_not_tried(pattern):
    assert find_problems(schema_of(field={"type": "string", "pattern": pattern}), {"field": "a" * 50 + "!"}) == []


def test_long_text_is_not_matched_against_a_pattern():
    assert (
        find_problems(schema_of(field={"type": "string", "pattern": "a+a+$"}), {"field": "a" * 1_000_000 + "!"}) == []
    )
