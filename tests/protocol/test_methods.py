"""The method table is complete against the methods that the schema marks."""

import msgspec
import pytest

from dragoman.protocol import methods, v1
from tests.protocol.schema_instances import DEFS, STABLE

ALL = [*methods.REQUESTS.values(), *methods.NOTIFICATIONS.values()]


def marked(suffix):
    """The types of the definitions marked with a method, by their method, of one role."""
    return {
        node["x-method"]: getattr(v1, name)
        for name, node in DEFS.items()
        if "x-method" in node and name.endswith(suffix)
    }


def marked_sides(suffix):
    return {
        node["x-method"]: node["x-side"] for name, node in DEFS.items() if name.endswith(suffix) and "x-side" in node
    }


def test_requests_take_and_give_what_the_schema_marks_for_them():
    assert {method.name: method.params for method in methods.REQUESTS.values()} == marked("Request")
    assert {method.name: method.result for method in methods.REQUESTS.values()} == marked("Response")


def test_notifications_take_what_the_schema_marks_for_them():
    assert {method.name: method.params for method in methods.NOTIFICATIONS.values()} == marked("Notification")
    assert all(method.result is None for method in methods.NOTIFICATIONS.values())


def test_sides_are_those_that_the_schema_marks():
    assert {method.name: method.side for method in methods.REQUESTS.values()} == marked_sides("Request")
    assert {method.name: method.side for method in methods.NOTIFICATIONS.values()} == marked_sides("Notification")


def test_a_method_is_stable_when_the_stable_schema_has_it():
    stable = {node["x-method"] for node in STABLE.values() if "x-method" in node}
    assert {method.name for method in ALL if method.stable} == stable


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
