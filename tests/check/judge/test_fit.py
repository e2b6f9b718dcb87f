"""The judge agrees with the schema in both directions, and finds unknown fields."""

import json
from typing import Any

import pytest

from dragoman.check import RecordedConversation
from dragoman.check.judge.dialect import dialect_of
from dragoman.check.judge.fit import Fitter, Flaw
from dragoman.check.judge.message import SeenMessage, read
from dragoman.check.rule import Version
from dragoman.protocol.methods import NOTIFICATIONS, REQUESTS
from tests.protocol.schema_instances import DEFS, instances, is_valid, minimal, mutations, with_other
from tests.table import each_row

METHODS = [*REQUESTS.values(), *NOTIFICATIONS.values()]
every_method = each_row("method", METHODS)
every_request = each_row("method", REQUESTS.values())


def call(method, params) -> SeenMessage:
    fields = {"jsonrpc": "2.0", "method": method.name, "params": params}
    return message(fields | ({"id": 1} if method.kind == "request" else {}))


def answer(method, result) -> SeenMessage:
    given = message({"jsonrpc": "2.0", "id": 1, "result": result})
    given.method = method.name
    return given


def message(fields) -> SeenMessage:
    found = read(RecordedConversation().add("agent", json.dumps(fields).encode()))
    assert isinstance(found, SeenMessage)
    return found


def find_flaws(seen: SeenMessage, version: Version = 1) -> list[Flaw]:
    return Fitter().find_flaws(seen, dialect_of(version))


def name_of(type_):
    return "ProxySuccessorResponse" if type_ is Any else type_.__name__


@every_method
def test_every_valid_call_fits(method):
    for instance in instances(DEFS[name_of(method.params)]):
        assert find_flaws(call(method, instance)) == []


@every_request
def test_every_valid_result_fits(method):
    for instance in instances(DEFS[name_of(method.result)]):
        assert find_flaws(answer(method, instance)) == []


@pytest.mark.extended
@every_method
def test_call_fits_exactly_if_the_schema_accepts_it(method):
    name = name_of(method.params)
    for path, kind, instance in mutations(name):
        flaws = [flaw for flaw in find_flaws(call(method, instance)) if flaw.mismatch is not None]
        assert bool(flaws) != is_valid(name, instance), (path, kind, instance, flaws)


@every_request
def test_result_fits_exactly_if_the_schema_accepts_it(method):
    name = name_of(method.result)
    for path, kind, instance in mutations(name):
        flaws = [flaw for flaw in find_flaws(answer(method, instance)) if flaw.mismatch is not None]
        assert bool(flaws) != is_valid(name, instance), (path, kind, instance, flaws)


@every_method
def test_custom_field_is_found_except_meta(method):
    instance = minimal(DEFS[name_of(method.params)])
    flaws = find_flaws(call(method, instance | {"fromTheFuture": 1, "_meta": {"any": 1}}))
    assert [(flaw.path, flaw.mismatch) for flaw in flaws] == [("params.fromTheFuture", None)]


def test_nested_custom_field_is_found():
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a", "mood": "good"}}
    flaws = find_flaws(call(NOTIFICATIONS["session/update"], {"sessionId": "s", "update": update}))
    assert [flaw.path for flaw in flaws] == ["params.update.content.mood"]


def test_field_of_a_later_version_is_not_custom():
    """A client with version 2 sends the fields of both versions, because it does not know the agent's version."""
    params = {"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "capabilities": {}, "mood": "good"}
    flaws = find_flaws(call(REQUESTS["initialize"], params))
    assert [flaw.path for flaw in flaws] == ["params.mood"]


def test_custom_field_in_the_envelope_is_found():
    params = {"sessionId": "s"}
    flaws = find_flaws(message({"jsonrpc": "2.0", "method": "session/cancel", "params": params, "traceId": "abc"}))
    assert [flaw.path for flaw in flaws] == ["traceId"]


def test_informational_fields_must_fit():
    params = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": "yes"}}}
    flaws = find_flaws(call(REQUESTS["initialize"], params))
    assert [flaw.path for flaw in flaws] == ["params.clientCapabilities.fs.readTextFile"]


def test_secrets_are_not_quoted():
    server = {"name": "a", "command": "/a", "args": [], "env": [{"name": "KEY", "value": 5}]}
    params = {"cwd": "/", "mcpServers": [with_other(server, ("env", 0, "value"), ["hush"])]}
    flaws = find_flaws(call(REQUESTS["session/new"], params))
    assert [flaw.path for flaw in flaws] == ["params.mcpServers[0].env[0].value"]
    assert "hush" not in flaws[0].problem


def test_empty_result_may_be_null():
    assert find_flaws(answer(REQUESTS["fs/write_text_file"], None)) == []
