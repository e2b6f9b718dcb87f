"""The generated types: complete, and whatever is made with them fits the schema."""

import json
import types

import msgspec
import pytest

from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.generated import v1 as generated
from dragoman.protocol.generated import v1_marks
from dragoman.protocol.unions import AnyOf, decode_hook
from tests.protocol.schema_instances import DEFS, STABLE, instances, is_valid

ENVELOPES = {name for name, node in DEFS.items() if node.get("x-docs-ignore")}
SCOPES = {"ElicitationSessionScope", "ElicitationRequestScope"}
FLATTENED = {"SessionConfigSelect", "SessionConfigBoolean"}
"""Definitions whose struct has the fields of their union as well."""
MERGED = {
    "RunningStateUpdate",
    "IdleStateUpdate",
    "RequiresActionStateUpdate",
    "UnknownStateUpdate",
    "ErrorStopReason",
}
"""Definitions whose fields are in the one struct of `StateUpdate`."""
ONLY_NAMES = {"ElicitationFormMode", "ElicitationUrlMode"}
"""Unions that no field has: msgspec does not decode them, `isinstance` knows them."""
STRUCTS = {name: each for name in generated.__all__ if isinstance(each := getattr(v1, name), msgspec.StructMeta)}


def definition_of(name, struct):
    """The definition that a struct's JSON must fit: its own, or that of the union it is a variant of."""
    if name in DEFS and struct.__struct_config__.tag is None:
        return name
    for union, each in vars(generated).items():
        if union in DEFS and struct in variants(each):
            return union
    return name


def variants(union):
    if isinstance(union, types.UnionType):
        return union.__args__
    return union.variants if isinstance(union, type) and issubclass(union, AnyOf) else ()


def smallest(struct):
    """A struct with its required fields only, each as simple as its type allows."""
    return struct(**{field.name: value_of(field.type) for field in msgspec.structs.fields(struct) if field.required})


def value_of(type_):
    info = msgspec.inspect.type_info(type_)
    if isinstance(info, msgspec.inspect.UnionType):
        info = info.types[0]
    match info:
        case msgspec.inspect.StructType(cls=struct):
            return smallest(struct)
        case msgspec.inspect.CustomType(cls=union):
            first = union.variants[0]
            return [] if first is list else smallest(first)
        case msgspec.inspect.ListType():
            return []
        case msgspec.inspect.LiteralType(values=values):
            return values[0]
        case msgspec.inspect.IntType():
            return 3
        case msgspec.inspect.FloatType():
            return 0.5
        case msgspec.inspect.BoolType():
            return False
        case _:
            return "words"


def test_every_definition_has_its_type():
    assert set(DEFS) - ENVELOPES - SCOPES - MERGED <= set(generated.__all__)
    assert set(generated.__all__) == {name for name in vars(v1) if name.isidentifier() and not name.startswith("_")}


@pytest.mark.parametrize("name", STRUCTS)
def test_a_struct_with_its_required_fields_is_valid_and_says_nothing_needless(name):
    value = json.loads(encode(smallest(STRUCTS[name])))
    assert is_valid(definition_of(name, STRUCTS[name]), value)
    required = {field.encode_name for field in msgspec.structs.fields(STRUCTS[name]) if field.required}
    assert set(value) - {STRUCTS[name].__struct_config__.tag_field} == required


@pytest.mark.parametrize("name", sorted(set(DEFS) - ENVELOPES - SCOPES - MERGED - ONLY_NAMES - FLATTENED))
def test_every_instance_of_every_definition_becomes_a_valid_value(name):
    for instance in instances(DEFS[name]):
        value = msgspec.convert(instance, getattr(v1, name), dec_hook=decode_hook)
        assert is_valid(name, json.loads(encode(value)))


def test_null_and_absent_differ_where_the_schema_says_so():
    assert encode(v1.SessionInfoUpdate()) == b'{"sessionUpdate":"session_info_update"}'
    assert encode(v1.SessionInfoUpdate(title=None)) == b'{"sessionUpdate":"session_info_update","title":null}'


def test_default_values_are_shared_and_so_cannot_be_changed():
    response = v1.InitializeResponse(protocol_version=1)
    with pytest.raises(AttributeError):
        response.agent_capabilities.load_session = True
    assert encode(response) == b'{"protocolVersion":1}'


def test_several_variants_of_one_definition_are_told_apart_by_class():
    text = v1.TextContent(text="a")
    assert encode(v1.AgentThoughtChunk(content=text)) == (
        b'{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"a"}}'
    )
    assert issubclass(v1.ToolCallProgress, v1.ToolCallUpdate)
    assert encode(v1.ToolCallUpdate(tool_call_id="t")) == b'{"toolCallId":"t"}'
    assert encode(v1.ToolCallProgress(tool_call_id="t")) == b'{"sessionUpdate":"tool_call_update","toolCallId":"t"}'


def test_the_modes_of_elicitation_are_known_to_isinstance():
    form = v1.FormElicitationForSession(message="m", session_id="s", requested_schema=v1.ElicitationSchema())
    assert isinstance(form, v1.ElicitationFormMode)
    assert not isinstance(form, v1.ElicitationUrlMode)
    assert isinstance(form, v1.CreateElicitationRequest)


def test_what_the_stable_schema_lacks_is_listed_as_unstable():
    missing = set(DEFS) - set(STABLE) - ENVELOPES - MERGED
    assert missing <= v1_marks.UNSTABLE
    assert {"PromptResponse.usage", "SessionUpdate.plan_update", "McpServer.acp"} <= v1_marks.UNSTABLE
    assert not any(name in v1_marks.UNSTABLE for name in STABLE)
