"""Unions whose variants are found by trial."""

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


def test_tagged_value_may_fit_only_the_untagged_variant():
    method = {"type": "env_var", "id": "a", "name": "b"}
    assert decode(method, v1.AuthMethod) == v1.AuthMethodAgent(id="a", name="b")


def test_the_variants_without_any_tag_are_tried_in_order():
    both = {"uri": "a", "text": "b", "blob": "c"}
    assert isinstance(decode(both, v1.EmbeddedResourceResource), v1.TextResourceContents)
    assert isinstance(decode({"uri": "a", "blob": "c"}, v1.EmbeddedResourceResource), v1.BlobResourceContents)


def test_lists_are_distinguished_by_their_items():
    flat = [{"value": "a", "name": "A"}]
    grouped = [{"group": "g", "name": "G", "options": flat}]
    assert isinstance(decode(flat, v1.SessionConfigSelectOptions)[0], v1.SessionConfigSelectOption)
    assert isinstance(decode(grouped, v1.SessionConfigSelectOptions)[0], v1.SessionConfigSelectGroup)


def test_unlisted_tag_is_kept_if_the_schema_allows_it():
    data = {"type": "color", "palette": [1]}
    assert decode(data, v1.ElicitationPropertySchema) == UnknownVariant("color", data)


def test_unlisted_tag_still_needs_the_common_fields():
    with pytest.raises(msgspec.ValidationError):
        decode({"mode": "telepathy", "message": "m"}, v1.CreateElicitationRequest)
    data = {"mode": "telepathy", "message": "m", "requestId": 1}
    assert decode(data, v1.CreateElicitationRequest) == UnknownVariant("telepathy", data)


def test_listed_tag_is_never_an_unknown_variant():
    with pytest.raises(msgspec.ValidationError):
        decode({"type": "string", "minLength": "long"}, v1.ElicitationPropertySchema)


@pytest.mark.parametrize("value", [None, 5, "words", [], {}])
def test_value_that_fits_no_variant_is_refused(value):
    with pytest.raises(msgspec.ValidationError):
        decode(value, v1.McpServer)


def test_isinstance_accepts_every_variant():
    stdio = v1.McpServerStdio(name="a", command="b", args=[], env=[])
    assert isinstance(stdio, v1.McpServer)
    assert not isinstance(v1.ListSessionsRequest(), v1.McpServer)
    assert isinstance(UnknownVariant("a", {}), v1.ElicitationPropertySchema)
    assert not isinstance(UnknownVariant("a", {}), v1.McpServer)
    assert isinstance([], v1.SessionConfigSelectOptions)


def test_unknown_variant_is_encoded_unchanged():
    unknown = UnknownVariant("video", {"type": "video", "uri": "a"})
    assert msgspec.json.encode([unknown], enc_hook=encode_hook) == b'[{"type":"video","uri":"a"}]'
    assert repr(unknown) == "UnknownVariant(tag='video', data={'type': 'video', 'uri': 'a'})"
    assert unknown != UnknownVariant("video", {})


def test_value_without_json_form_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="object cannot be converted to JSON"):
        encode_hook(object())


def test_foreign_types_are_refused():
    with pytest.raises(NotImplementedError, match="not a union of the protocol"):
        decode_hook(complex, 1)


def test_a_union_without_a_tag_field_finds_no_tag():
    assert v1.EmbeddedResourceResource.tag({"type": "text"}) is None
    assert issubclass(v1.EmbeddedResourceResource, AnyOf)
