"""The method table is complete compared with the schema."""

import msgspec
import pytest

from dragoman.protocol import methods, v1
from tests.protocol.schema_instances import DEFS, STABLE
from tests.table import each_row

ALL = [*methods.REQUESTS.values(), *methods.NOTIFICATIONS.values()]


def marked(suffix):
    """Return the types of the definitions marked with a method, by method, for one role."""
    return {
        node["x-method"]: getattr(v1, name)
        for name, node in DEFS.items()
        if "x-method" in node and name.endswith(suffix)
    }


def marked_sides(suffix):
    return {
        node["x-method"]: node["x-side"] for name, node in DEFS.items() if name.endswith(suffix) and "x-side" in node
    }


def test_request_types_match_the_schema():
    assert {method.name: method.params for method in methods.REQUESTS.values()} == marked("Request")
    assert {method.name: method.result for method in methods.REQUESTS.values()} == marked("Response")


def test_notification_types_match_the_schema():
    assert {method.name: method.params for method in methods.NOTIFICATIONS.values()} == marked("Notification")
    assert all(method.result is None for method in methods.NOTIFICATIONS.values())


def test_sides_match_the_schema():
    assert {method.name: method.side for method in methods.REQUESTS.values()} == marked_sides("Request")
    assert {method.name: method.side for method in methods.NOTIFICATIONS.values()} == marked_sides("Notification")


def test_methods_in_the_stable_schema_are_stable():
    stable = {node["x-method"] for node in STABLE.values() if "x-method" in node}
    assert {method.name for method in ALL if method.stable} == stable


def test_each_method_has_its_constant():
    constants = [value for value in vars(methods).values() if isinstance(value, methods.Method)]
    assert {id(method) for method in constants} == {id(method) for method in ALL}


def test_name_of_both_kinds_is_found_as_the_request():
    assert methods.METHODS["mcp/message"] is methods.MCP_MESSAGE
    assert set(methods.METHODS) == {method.name for method in ALL}


@each_row("method", [each for each in ALL if each.capability])
def test_each_capability_path_exists(method):
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
