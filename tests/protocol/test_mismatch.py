"""The messages of refused values."""

import pytest

from dragoman.protocol.mismatch import FieldPath, MissingFieldError, describe, quote, unknown_value, wrong_type
from tests.table import each_row

PLACE = FieldPath("params", lenient=False)


@each_row(
    ("value", "words"),
    [
        (None, "null"),
        (True, "a boolean (true)"),
        (False, "a boolean (false)"),
        (5, "a number (5)"),
        (-1.5, "a number (-1.5)"),
        ("a", 'a string ("a")'),
        ([1], "an array"),
        ({"a": 1}, "an object"),
        (0, "a number (0)"),
        (10**99, "a number (1" + "0" * 58 + "…)"),
    ],
)
def test_values_are_described_as_json(value, words):
    assert describe(value) == words


def test_unquotable_value_is_described_by_its_type():
    assert describe("secret", may_quote=False) == "a string"


def test_long_strings_are_cut():
    assert quote("x" * 61) == '"' + "x" * 59 + '…"'
    assert quote("x" * 60) == '"' + "x" * 60 + '"'


def test_places_are_formatted_as_paths():
    assert PLACE.key("mcpServers").item(0).key("env").path == "params.mcpServers[0].env"
    assert PLACE.key("not a name").path == 'params["not a name"]'


@pytest.mark.parametrize("field", ["env", "headers", "_meta"])
def test_everything_below_a_secret_field_is_secret(field):
    place = PLACE.key(field).item(0).key("value")
    assert wrong_type(place, "a string", 5771).got == "a number"
    assert "hidden" not in str(unknown_value(place, "value", "hidden", ["a"]))


@pytest.mark.parametrize("field", ["clientCapabilities", "clientInfo", "_meta"])
def test_informational_fields_are_lenient_at_all_levels(field):
    assert PLACE.key(field).key("deeper").lenient
    assert not PLACE.key("mcpServers").lenient


@pytest.mark.parametrize("field", ["mcpServers", "args", "env", "headers"])
def test_empty_array_is_suggested_for_omitted_lists(field):
    assert (
        MissingFieldError(PLACE, field, "an array").problem == "required field is missing; send [] when there are none"
    )
    assert MissingFieldError(PLACE, "prompt", "an array").problem == "required field is missing"
