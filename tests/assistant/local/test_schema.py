import jsonschema
import pytest

from dragoman.assistant.models.local.schema import MAX_DEPTH, SPACING, usable_schema


def reduced(schema):
    found = usable_schema(schema)
    assert found.pop("x-guidance") == SPACING
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def inside(schema):
    return reduced({"type": "object", "properties": {"x": schema}})["properties"]["x"]


def test_an_object_is_closed_so_that_no_fields_are_invented():
    assert reduced({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}) == {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "string"}, {"properties": []}])
def test_arguments_are_an_object_even_when_the_schema_does_not_say_so(schema):
    found = reduced(schema)
    assert (found["type"], found["properties"], found["additionalProperties"]) == ("object", {}, False)


def test_an_object_that_is_open_on_purpose_stays_open():
    assert reduced({"type": "object", "additionalProperties": True})["additionalProperties"] is True
    typed = {"type": "object", "additionalProperties": {"type": "integer", "multipleOf": 2}}
    assert reduced(typed)["additionalProperties"] == {"type": "integer"}


def test_required_fields_that_are_not_described_may_be_anything():
    assert reduced({"type": "object", "required": ["a"]})["properties"] == {"a": {}}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"type": "string", "pattern": "(?=a)b", "format": "uuid"}, {"type": "string"}),
        ({"not": {"type": "string"}}, {}),
        ({"type": "strnig"}, {}),
        ({"type": ["string", "null", 7]}, {"type": ["string", "null"]}),
        ({"type": "string", "minLength": 3, "maxLength": 1}, {"type": "string"}),
        ({"type": "string", "minLength": "3", "maxLength": -1}, {"type": "string"}),
        ({"type": "integer", "minimum": 1, "maximum": 9}, {"type": "integer", "minimum": 1, "maximum": 9}),
        ({"type": "integer", "minimum": True}, {"type": "integer"}),
        ({"type": "string", "enum": ["a", "b"]}, {"enum": ["a", "b"]}),
        ({"enum": []}, {}),
        ({"const": 3, "type": "string"}, {"const": 3}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"allOf": [{"type": "string"}]}, {"type": "string"}),
        ({"allOf": [{"type": "string"}, {"minLength": 3}]}, {}),
        (
            {"type": "array", "items": {"type": "string", "pattern": "x"}},
            {"type": "array", "items": {"type": "string"}},
        ),
        ({"$ref": "https://example.com/schema"}, {}),
        (True, {}),
    ],
)
def test_only_what_the_decoder_understands_is_kept(given, kept):
    assert inside(given) == kept


def test_references_keep_their_targets():
    colour = {"type": "string", "enum": ["red"], "pattern": "r"}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/colour"}}, "$defs": {"colour": colour}}
    found = reduced(schema)
    assert found["properties"]["x"] == {"$ref": "#/$defs/colour"}
    assert found["$defs"] == {"colour": {"enum": ["red"]}}


def test_a_schema_without_end_is_cut():
    deep = {"type": "string"}
    for _ in range(MAX_DEPTH * 3):
        deep = {"type": "array", "items": deep}
    assert inside(deep)["type"] == "array"
