"""The types and methods of version 2 are complete, and decoded strictly and leniently as in the schema."""

import json
import random
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from dragoman.errors import InvalidParamsError, InvalidResultError
from dragoman.protocol import methods_v2, v2
from dragoman.protocol.decode import decode_params, decode_result, encode
from tests.protocol.schema_instances import V2, dotted
from tests.protocol.schema_mending import CannotMend, mend_v2
from tests.table import each_row

REQUESTS = [method for method in methods_v2.REQUESTS.values() if method.result is not Any]
ALL = [*methods_v2.REQUESTS.values(), *methods_v2.NOTIFICATIONS.values()]
MENDED = {"capabilities", "_meta"}
"""Informational fields, whose default an agent uses instead of a malformed value."""

KEPT_AS_THEY_COME = {"data"}
"""Fields of any type: the data of an error, which the schema only describes for two codes."""

MOST_MUTATIONS = 1000
"""Maximum number of mutations per message. Updates have four times as many."""

every_method = each_row("method", ALL)
every_request = each_row("method", REQUESTS)


def as_json(value):
    return json.dumps(value).encode()


def marked(suffix):
    return {
        node["x-method"]: (getattr(v2, name), node["x-side"])
        for name, node in V2.defs.items()
        if "x-method" in node and name.endswith(suffix)
    }


def without_defaults(value):
    """Return the value without members that mean the same as being absent."""
    if isinstance(value, dict):
        kept = {key: without_defaults(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, [], {})}
    return [without_defaults(each) for each in value] if isinstance(value, list) else value


def test_method_table_matches_the_schema():
    requests, notifications = methods_v2.REQUESTS.values(), methods_v2.NOTIFICATIONS.values()
    assert {each.name: (each.params, each.side) for each in requests} == marked("Request")
    assert {each.name: each.result for each in requests} == {
        name: type_ for name, (type_, _) in marked("Response").items()
    }
    assert {each.name: (each.params, each.side) for each in notifications} == marked("Notification")
    stable = {node["x-method"] for node in V2.stable.values() if "x-method" in node}
    assert {each.name for each in ALL if each.stable} == stable


@every_method
def test_valid_params_decode_and_encode_unchanged(method):
    name = method.params.__name__
    for instance in V2.instances(V2.defs[name]):
        back = json.loads(encode(decode_params(method, as_json(instance))))
        assert V2.is_valid(name, back)
        assert without_defaults(back) == without_defaults(instance)


@every_request
def test_valid_results_decode_and_encode_unchanged(method):
    name = method.result.__name__
    for instance in V2.instances(V2.defs[name]):
        back = json.loads(encode(decode_result(method, as_json(instance))))
        assert V2.is_valid(name, back)
        assert without_defaults(back) == without_defaults(instance)


@pytest.mark.extended
@every_method
def test_params_decoder_agrees_with_the_schema(method):
    name = method.params.__name__
    mutations = list(V2.mutations(name))
    for path, _, message in random.sample(mutations, min(len(mutations), MOST_MUTATIONS)):
        if V2.is_valid(name, message) or MENDED.intersection(path):
            decode_params(method, as_json(message))
            continue
        with pytest.raises(InvalidParamsError) as caught:
            decode_params(method, as_json(message))
        assert caught.value.path.startswith(dotted("params", path[:-1]))
        assert {"path", "problem", "expected", "got"} == set(caught.value.data)


@every_method
def test_params_are_repaired_exactly_where_the_schema_is_marked(method):
    name = method.params.__name__
    for path, _, message in V2.mutations(name):
        try:
            mended = mend_v2(V2.defs[name], message)
        except CannotMend:
            with pytest.raises(InvalidParamsError):
                decode_params(method, as_json(message), lenient=True)
            continue
        if not KEPT_AS_THEY_COME.intersection(path) and not isinstance(
            decode_params(method, as_json(mended)), v2.UnknownVariant
        ):
            given = json.loads(encode(decode_params(method, as_json(message), lenient=True)))
            assert without_defaults(given) == without_defaults(
                json.loads(encode(decode_params(method, as_json(mended))))
            )


@every_request
def test_results_are_repaired_exactly_where_the_schema_is_marked(method):
    name = method.result.__name__
    for path, _, message in V2.mutations(name):
        try:
            mended = mend_v2(V2.defs[name], message)
        except CannotMend:
            with pytest.raises(InvalidResultError):
                decode_result(method, as_json(message))
            continue
        if not KEPT_AS_THEY_COME.intersection(path):
            assert decode_result(method, as_json(message)) == decode_result(method, as_json(mended))


def test_null_and_absent_differ_in_upserts():
    assert encode(v2.AgentMessage(message_id="m")) == b'{"sessionUpdate":"agent_message","messageId":"m"}'
    cleared = b'{"sessionUpdate":"agent_message","messageId":"m","content":null}'
    assert encode(v2.AgentMessage(message_id="m", content=None)) == cleared
    update = msgspec.json.decode(b'{"toolCallId":"t","title":null}', type=v2.ToolCallUpdate)
    assert (update.title, update.kind) == (None, msgspec.UNSET)


def test_version_1_does_not_import_version_2():
    imports = "import sys; import dragoman.protocol.connection, dragoman.protocol.lenient"
    code = f"{imports}; print([name for name in sys.modules if 'v2' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
