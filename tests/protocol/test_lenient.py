"""The schema's leniency marks apply to messages for a client, and to informational fields for an agent."""

import json

import pytest

from dragoman.errors import InvalidParamsError, InvalidResultError
from dragoman.protocol import methods, v1
from dragoman.protocol.decode import decode_params, decode_result, encode
from dragoman.protocol.lenient import build
from dragoman.protocol.mismatch import FieldPath
from tests.protocol.schema_instances import DEFS, instances, mutations
from tests.protocol.schema_mending import CannotMend, mend
from tests.table import each_row

METHODS = [*methods.REQUESTS.values(), *methods.NOTIFICATIONS.values()]
WITH_RESULT = [method for method in methods.REQUESTS.values() if method is not methods.PROXY_SUCCESSOR]


def as_json(value):
    return json.dumps(value).encode()


def update(**fields):
    raw = as_json({"sessionId": "s", "update": fields})
    return decode_params(methods.SESSION_UPDATE, raw, lenient=True).update


@each_row("method", METHODS)
@each_row("is_lenient", [False, True])
def test_slow_decoder_reads_valid_values_like_the_fast_one(method, is_lenient):
    for instance in instances(DEFS[method.params.__name__]):
        place = FieldPath("params", is_lenient)
        assert build(method.params, instance, place) == decode_params(method, as_json(instance))


@each_row("method", METHODS)
def test_params_are_repaired_exactly_where_the_schema_is_marked(method):
    name = method.params.__name__
    for _, _, message in mutations(name):
        try:
            mended = mend(DEFS[name], message)
        except CannotMend:
            with pytest.raises(InvalidParamsError):
                decode_params(method, as_json(message), lenient=True)
        else:
            expected = decode_params(method, as_json(mended))
            if isinstance(expected, v1.UnknownVariant):
                expected.data = message
            assert decode_params(method, as_json(message), lenient=True) == expected


@each_row("method", WITH_RESULT)
def test_results_are_repaired_exactly_where_the_schema_is_marked(method):
    name = method.result.__name__
    for _, _, message in mutations(name):
        try:
            mended = mend(DEFS[name], message)
        except CannotMend:
            with pytest.raises(InvalidResultError):
                decode_result(method, as_json(message))
        else:
            assert decode_result(method, as_json(message)) == decode_result(method, as_json(mended))


def test_agent_repairs_only_informational_fields():
    request = decode_params(
        methods.INITIALIZE,
        as_json(
            {
                "protocolVersion": 1,
                "clientCapabilities": {"fs": {"readTextFile": "yes", "writeTextFile": True}, "terminal": 1, "nes": 5},
                "clientInfo": {"name": 5},
                "_meta": "no object",
            }
        ),
    )
    capabilities = v1.ClientCapabilities(fs=v1.FileSystemCapabilities(write_text_file=True))
    assert request == v1.InitializeRequest(protocol_version=1, client_capabilities=capabilities)


def test_agent_treats_malformed_capabilities_as_absent():
    request = decode_params(methods.INITIALIZE, b'{"protocolVersion":1,"clientCapabilities":[]}')
    assert request.client_capabilities == v1.ClientCapabilities()


def test_agent_repairs_no_other_marked_field():
    with pytest.raises(InvalidParamsError) as caught:
        decode_params(methods.SESSION_NEW, b'{"cwd":"/","mcpServers":"none"}')
    assert caught.value.path == "params.mcpServers"
    with pytest.raises(InvalidParamsError) as caught:
        decode_params(methods.SESSION_NEW, b'{"cwd":"/","mcpServers":[],"additionalDirectories":["/a",5]}')
    assert caught.value.path == "params.additionalDirectories[1]"


def test_unknown_session_update_is_kept_unchanged():
    came = {"sessionUpdate": "mood_update", "mood": ["cheerful", None]}
    unknown = update(**came)
    assert unknown == v1.UnknownVariant("mood_update", came)
    assert json.loads(encode(v1.SessionNotification(session_id="s", update=unknown)))["update"] == came


def test_unknown_content_is_kept_among_known_content():
    video = {"type": "video", "uri": "a"}
    progress = update(
        sessionUpdate="tool_call_update",
        toolCallId="t",
        content=[{"type": "content", "content": video}, {"type": "hologram"}, {"type": "diff"}, 5],
    )
    assert progress.content == [
        v1.Content(content=v1.UnknownVariant("video", video)),
        v1.UnknownVariant("hologram", {"type": "hologram"}),
    ]


def test_an_unknown_variant_is_refused_by_an_agent():
    with pytest.raises(InvalidParamsError, match='unknown content type "video"'):
        decode_params(methods.SESSION_PROMPT, as_json({"sessionId": "s", "prompt": [{"type": "video"}]}))


def test_malformed_title_leaves_the_title_unchanged():
    assert update(sessionUpdate="session_info_update", title=5) == v1.SessionInfoUpdate()
    assert update(sessionUpdate="session_info_update", title=None) == v1.SessionInfoUpdate(title=None)


def test_a_number_too_large_for_a_float_is_refused():
    cost = {"amount": int("9" * 400), "currency": "EUR"}
    usage = {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost}
    with pytest.raises(InvalidParamsError) as caught:
        decode_params(methods.SESSION_UPDATE, as_json({"sessionId": "s", "update": usage}))
    assert caught.value.path == "params.update.cost.amount"


def test_client_repairs_a_tagged_variant_instead_of_using_the_untagged_one():
    method = {"type": "terminal", "id": "a", "name": "b", "args": None}
    response = decode_result(methods.INITIALIZE, as_json({"protocolVersion": 1, "authMethods": [method]}))
    assert response.auth_methods == [v1.AuthMethodTerminal(id="a", name="b")]


def test_agent_reads_a_tagged_server_as_stdio_if_only_that_is_valid():
    server = {"type": "http", "name": "a", "command": "b", "args": [], "env": []}
    request = decode_params(methods.SESSION_NEW, as_json({"cwd": "/", "mcpServers": [server]}))
    assert request.mcp_servers == [v1.McpServerStdio(name="a", command="b", args=[], env=[])]
