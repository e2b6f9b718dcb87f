"""The judge takes and refuses exactly what the schema does, in both directions, and finds fields that it has not."""

import json
from typing import Any

import pytest

from dragoman.check import Conversation
from dragoman.check.judge.dialect import dialect_of
from dragoman.check.judge.fit import Fitter, Flaw
from dragoman.check.judge.message import SeenMessage, read
from dragoman.check.rule import Version
from dragoman.protocol.methods import NOTIFICATIONS, REQUESTS
from tests.protocol.schema_instances import DEFS, instances, is_valid, minimal, mutations, with_other

METHODS = [*REQUESTS.values(), *NOTIFICATIONS.values()]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.name}-{method.kind}")
every_request = pytest.mark.parametrize("method", REQUESTS.values(), ids=lambda method: method.name)


def call(method, params) -> SeenMessage:
    fields = {"jsonrpc": "2.0", "method": method.name, "params": params}
    return message(fields | ({"id": 1} if method.kind == "request" else {}))


def answer(method, result) -> SeenMessage:
    given = message({"jsonrpc": "2.0", "id": 1, "result": result})
    given.method = method.name
    return given


def message(fields) -> SeenMessage:
    found = read(Conversation().add("agent", json.dumps(fields).encode()))
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


@every_method
def test_a_call_fits_if_and_only_if_the_schema_takes_it(method):
    name = name_of(method.params)
    for path, kind, instance in mutations(name):
        flaws = [flaw for flaw in find_flaws(call(method, instance)) if flaw.mismatch is not None]
        assert bool(flaws) != is_valid(name, instance), (path, kind, instance, flaws)


@every_request
def test_a_result_fits_if_and_only_if_the_schema_takes_it(method):
    name = name_of(method.result)
    for path, kind, instance in mutations(name):
        flaws = [flaw for flaw in find_flaws(answer(method, instance)) if flaw.mismatch is not None]
        assert bool(flaws) != is_valid(name, instance), (path, kind, instance, flaws)


@every_method
def test_a_field_of_ones_own_is_found_and_meta_is_not(method):
    instance = minimal(DEFS[name_of(method.params)])
    flaws = find_flaws(call(method, instance | {"fromTheFuture": 1, "_meta": {"any": 1}}))
    assert [(flaw.path, flaw.mismatch) for flaw in flaws] == [("params.fromTheFuture", None)]


def test_a_field_of_ones_own_is_found_deep_inside():
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a", "mood": "good"}}
    flaws = find_flaws(call(NOTIFICATIONS["session/update"], {"sessionId": "s", "update": update}))
    assert [flaw.path for flaw in flaws] == ["params.update.content.mood"]


def test_a_field_of_a_later_version_is_not_ones_own():
    """A client that knows version 2 says hello in both, for it cannot know which of them the agent speaks."""
    params = {"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "capabilities": {}, "mood": "good"}
    flaws = find_flaws(call(REQUESTS["initialize"], params))
    assert [flaw.path for flaw in flaws] == ["params.mood"]


def test_a_field_of_ones_own_is_found_in_the_envelope():
    params = {"sessionId": "s"}
    flaws = find_flaws(message({"jsonrpc": "2.0", "method": "session/cancel", "params": params, "traceId": "abc"}))
    assert [flaw.path for flaw in flaws] == ["traceId"]


def test_what_only_informs_a_peer_has_to_fit_too():
    params = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": "yes"}}}
    flaws = find_flaws(call(REQUESTS["initialize"], params))
    assert [flaw.path for flaw in flaws] == ["params.clientCapabilities.fs.readTextFile"]


def test_secrets_are_not_quoted():
    server = {"name": "a", "command": "/a", "args": [], "env": [{"name": "KEY", "value": 5}]}
    params = {"cwd": "/", "mcpServers": [with_other(server, ("env", 0, "value"), ["hush"])]}
    flaws = find_flaws(call(REQUESTS["session/new"], params))
    assert [flaw.path for flaw in flaws] == ["params.mcpServers[0].env[0].value"]
    assert "hush" not in flaws[0].problem


def test_an_empty_answer_may_be_null():
    assert find_flaws(answer(REQUESTS["fs/write_text_file"], None)) == []
