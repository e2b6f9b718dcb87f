"""Unions that are told apart by trying."""

import msgspec
import pytest

from dragoman.protocol import v1
from dragoman.protocol.unions import AnyOf, UnknownVariant, decode_hook, encode_hook


def decode(value, type_):
    return msgspec.convert(value, type_, dec_hook=decode_hook)


def test_a_tag_chooses_its_variant():
    server = {"type": "sse", "name": "a", "url": "b", "headers": []}
    assert decode(server, v1.McpServer) == v1.McpServerSse(name="a", url="b", headers=[])


def test_without_a_tag_the_untagged_variant_is_tried():
    assert isinstance(decode({"name": "a", "command": "b", "args": [], "env": []}, v1.McpServer), v1.McpServerStdio)


def test_a_tagged_value_that_fits_only_the_untagged_variant_is_that_as_the_schema_has_it():
    method = {"type": "env_var", "id": "a", "name": "b"}
    assert decode(method, v1.AuthMethod) == v1.AuthMethodAgent(id="a", name="b")


def test_the_variants_without_any_tag_are_tried_in_order():
    both = {"uri": "a", "text": "b", "blob": "c"}
    assert isinstance(decode(both, v1.EmbeddedResourceResource), v1.TextResourceContents)
    assert isinstance(decode({"uri": "a", "blob": "c"}, v1.EmbeddedResourceResource), v1.BlobResourceContents)


def test_lists_are_told_apart_by_their_items():
    flat = [{"value": "a", "name": "A"}]
    grouped = [{"group": "g", "name": "G", "options": flat}]
    assert isinstance(decode(flat, v1.SessionConfigSelectOptions)[0], v1.SessionConfigSelectOption)
    assert isinstance(decode(grouped, v1.SessionConfigSelectOptions)[0], v1.SessionConfigSelectGroup)


def test_a_tag_not_listed_is_kept_where_the_schema_has_a_place_for_it():
    data = {"type": "color", "palette": [1]}
    assert decode(data, v1.ElicitationPropertySchema) == UnknownVariant("color", data)


def test_a_tag_not_listed_must_still_have_what_all_variants_have():
    with pytest.raises(msgspec.ValidationError):
        decode({"mode": "telepathy", "message": "m"}, v1.CreateElicitationRequest)
    data = {"mode": "telepathy", "message": "m", "requestId": 1}
    assert decode(data, v1.CreateElicitationRequest) == UnknownVariant("telepathy", data)


def test_a_listed_tag_is_never_taken_for_an_unknown_one():
    with pytest.raises(msgspec.ValidationError):
        decode({"type": "string", "minLength": "long"}, v1.ElicitationPropertySchema)


@pytest.mark.parametrize("value", [None, 5, "words", [], {}])
def test_what_fits_no_variant_is_refused(value):
    with pytest.raises(msgspec.ValidationError):
        decode(value, v1.McpServer)


def test_isinstance_means_any_of_the_variants():
    stdio = v1.McpServerStdio(name="a", command="b", args=[], env=[])
    assert isinstance(stdio, v1.McpServer)
    assert not isinstance(v1.ListSessionsRequest(), v1.McpServer)
    assert isinstance(UnknownVariant("a", {}), v1.ElicitationPropertySchema)
    assert not isinstance(UnknownVariant("a", {}), v1.McpServer)
    assert isinstance([], v1.SessionConfigSelectOptions)


def test_an_unknown_variant_is_written_as_it_came():
    unknown = UnknownVariant("video", {"type": "video", "uri": "a"})
    assert msgspec.json.encode([unknown], enc_hook=encode_hook) == b'[{"type":"video","uri":"a"}]'
    assert repr(unknown) == "UnknownVariant(tag='video', data={'type': 'video', 'uri': 'a'})"
    assert unknown != UnknownVariant("video", {})


def test_what_has_no_json_form_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="object has no JSON form"):
        encode_hook(object())


def test_types_that_are_no_union_of_ours_are_refused():
    with pytest.raises(NotImplementedError, match="no union of the protocol"):
        decode_hook(complex, 1)


def test_a_union_without_a_tag_field_finds_no_tag():
    assert v1.EmbeddedResourceResource.tag({"type": "text"}) is None
    assert issubclass(v1.EmbeddedResourceResource, AnyOf)
