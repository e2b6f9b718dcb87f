"""The method table is complete against the schema and its index of methods."""

import json

import msgspec
import pytest

from dragoman.protocol import methods, v1
from tests.protocol.schema_instances import DEFS, FOLDER

ALL = [*methods.REQUESTS.values(), *methods.NOTIFICATIONS.values()]
META = json.loads((FOLDER / "meta.unstable.json").read_text("utf-8"))
STABLE_META = json.loads((FOLDER / "meta.json").read_text("utf-8"))


def names(meta, side):
    return set(meta[f"{side}Methods"].values())


def marked(suffix):
    """The definitions marked with a method, by their method, of one role."""
    return {node["x-method"]: name for name, node in DEFS.items() if "x-method" in node and name.endswith(suffix)}


def name_of(type_):
    return getattr(type_, "__name__", None)


@pytest.mark.parametrize("side", ["agent", "client", "protocol"])
def test_every_method_of_the_index_is_there_on_its_side(side):
    sides = {side, "both"} if side != "protocol" else {side}
    assert {method.name for method in ALL if method.side in sides} == names(META, side)


def test_a_method_is_stable_when_the_stable_index_has_it():
    stable = names(STABLE_META, "agent") | names(STABLE_META, "client") | names(STABLE_META, "protocol")
    assert {method.name for method in ALL if method.stable} == stable


def test_requests_take_and_give_what_the_schema_marks_for_them():
    assert {method.name: name_of(method.params) for method in methods.REQUESTS.values()} == marked("Request")
    given = {method.name: name_of(method.result) for method in methods.REQUESTS.values()}
    assert given == marked("Response") | {"mcp/message": "Any"}
    assert methods.MCP_MESSAGE.result is v1.MessageMcpResponse


def test_notifications_take_what_the_schema_marks_for_them():
    taken = {method.name: name_of(method.params) for method in methods.NOTIFICATIONS.values()}
    assert taken == marked("Notification")
    assert all(method.result is None for method in methods.NOTIFICATIONS.values())


def test_sides_are_those_that_the_schema_marks():
    for method in ALL:
        assert DEFS[name_of(method.params)]["x-side"] == method.side


def test_each_method_has_its_constant():
    constants = [value for value in vars(methods).values() if isinstance(value, methods.Method)]
    assert {id(method) for method in constants} == {id(method) for method in ALL}


def test_a_name_that_is_both_is_found_as_the_request():
    assert methods.METHODS["mcp/message"] is methods.MCP_MESSAGE
    assert set(methods.METHODS) == {method.name for method in ALL}


@pytest.mark.parametrize("method", [each for each in ALL if each.capability], ids=lambda each: each.name)
def test_each_capability_is_a_place_in_the_capabilities(method):
    root, *steps = method.capability.split(".")
    node = DEFS[{"agentCapabilities": "AgentCapabilities", "clientCapabilities": "ClientCapabilities"}[root]]
    for step in steps:
        node = definition(node["properties"][step])
    assert node is not None


def definition(node):
    parts = [node, *node.get("allOf", ()), *node.get("anyOf", ())]
    refs = [part["$ref"].rsplit("/", 1)[1] for part in parts if "$ref" in part]
    return DEFS[refs[0]] if refs else node


def test_a_method_cannot_be_changed():
    with pytest.raises(AttributeError):
        methods.INITIALIZE.name = "other"
    assert isinstance(methods.INITIALIZE, msgspec.Struct)
