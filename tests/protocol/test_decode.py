"""Every valid message is decoded, and every invalid one is refused with the place and the reason."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ErrorCode, InvalidParamsError, InvalidResultError
from dragoman.protocol import methods, v1
from dragoman.protocol.decode import decode_params, decode_result, encode
from tests.protocol.schema_instances import DEFS, dotted, instances, is_valid, minimal, mutations
from tests.table import each_row

METHODS = [*methods.REQUESTS.values(), *methods.NOTIFICATIONS.values()]
MENDED = {"_meta", "capabilities", "clientCapabilities", "clientInfo"}
MAY_STAND_FOR_ANOTHER = {"type", "blob", "requestId"}
"""Fields that distinguish variants. Without one, the missing field may be reported for another variant."""

every_method = each_row("method", METHODS)
every_request = each_row("method", methods.REQUESTS.values())


def as_json(value):
    return json.dumps(value).encode()


def refusal(method, value, **options):
    with pytest.raises(InvalidParamsError) as caught:
        decode_params(method, value if isinstance(value, bytes) else as_json(value), **options)
    return caught.value


def definition(type_):
    return "ProxySuccessorResponse" if type_ is Any else type_.__name__


def without_nulls_and_empties(value):
    """Return the value without members that mean the same as being absent."""
    if isinstance(value, dict):
        kept = {key: without_nulls_and_empties(each) for key, each in value.items()}
        # `type: object` is the default of a requested schema, and the only default that is always written.
        return {key: each for key, each in kept.items() if each not in (None, [], {}, False, "object")}
    return [without_nulls_and_empties(each) for each in value] if isinstance(value, list) else value


@every_method
def test_valid_params_decode_and_encode_unchanged(method):
    name = definition(method.params)
    for instance in instances(DEFS[name]):
        assert is_valid(name, instance)
        back = json.loads(encode(decode_params(method, as_json(instance))))
        assert is_valid(name, back)
        assert without_nulls_and_empties(back) == without_nulls_and_empties(instance)


@every_request
def test_valid_results_decode_and_encode_unchanged(method):
    name = definition(method.result)
    for instance in instances(DEFS[name]):
        back = json.loads(encode(decode_result(method, as_json(instance))))
        assert is_valid(name, back)
        assert without_nulls_and_empties(back) == without_nulls_and_empties(instance)


@every_method
def test_decoder_agrees_with_the_schema_and_names_the_wrong_place(method):
    name = definition(method.params)
    for path, kind, message in mutations(name):
        if is_valid(name, message) or MENDED.intersection(path):
            decode_params(method, as_json(message))
            continue
        error = refusal(method, message)
        if path[-1] in MAY_STAND_FOR_ANOTHER and kind == "missing":
            assert error.path.startswith(dotted("params", path[:-1]))
            assert error.path == dotted("params", path) or path[-1] == "type" or path[-1] in error.problem
        else:
            assert error.path == dotted("params", path)
        assert error.problem.startswith("required field is missing") == (kind == "missing") or path[-1] == "type"


@every_method
def test_unknown_fields_are_ignored_everywhere(method):
    instance = minimal(DEFS[definition(method.params)])
    assert encode(decode_params(method, as_json({**instance, "fromTheFuture": {"a": 1}}))) == encode(
        decode_params(method, as_json(instance))
    )


@every_method
def test_meta_is_kept(method):
    meta = {"trace": "abc", "nested": [1, None]}
    instance = {**minimal(DEFS[definition(method.params)]), "_meta": meta}
    assert decode_params(method, as_json(instance)).meta == meta


@every_method
def test_parameter_array_is_refused_with_a_reason(method):
    error = refusal(method, [1, 2])
    assert (error.path, error.problem) == ("params", "expected an object, got an array")


@pytest.mark.parametrize("raw", [b"", b"null", b"{}"])
def test_absent_parameters_are_an_empty_object(raw):
    assert decode_params(methods.SESSION_LIST, raw) == v1.ListSessionsRequest()
    assert refusal(methods.SESSION_NEW, raw).path == "params.cwd"


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, msgspec.Raw])
def test_every_bytes_type_is_decoded(form):
    good, bad = b'{"sessionId":"s"}', b'{"sessionId":5}'
    assert decode_params(methods.SESSION_CANCEL, form(good)).session_id == "s"
    with pytest.raises(InvalidParamsError):
        decode_params(methods.SESSION_CANCEL, form(bad))


@each_row(
    ("method", "params", "message"),
    [
        (
            methods.SESSION_NEW,
            {"cwd": "/"},
            "params.mcpServers: required field is missing; send [] when there are none",
        ),
        (methods.SESSION_NEW, {"cwd": 5}, "params.cwd: expected a string, got a number (5)"),
        (methods.SESSION_NEW, {"cwd": None}, "params.cwd: expected a string, got null"),
        (
            methods.SESSION_NEW,
            {"cwd": "/", "mcpServers": [{"name": "a", "command": "b", "args": []}]},
            "params.mcpServers[0].env: required field is missing; send [] when there are none",
        ),
        (
            methods.SESSION_NEW,
            {"cwd": "/", "mcpServers": [{"name": "a", "url": "b", "headers": []}]},
            (
                "params.mcpServers[0].command: required field is missing; "
                'if it is meant as "http" or "sse", say so in "type"'
            ),
        ),
        (
            methods.SESSION_NEW,
            {"cwd": "/", "mcpServers": [{"type": "ws", "name": "a", "url": "b"}]},
            (
                'params.mcpServers[0].type: unknown MCP server type "ws"; '
                'expected one of "acp", "http", "sse", or no type for stdio'
            ),
        ),
        (
            methods.SESSION_NEW,
            {"cwd": "/", "mcpServers": [{"type": "http", "name": "a", "url": "b", "headers": {"X": "y"}}]},
            'params.mcpServers[0].headers: expected an array, got an object; send an array of {"name": …, "value": …}',
        ),
        (
            methods.SESSION_PROMPT,
            {"sessionId": "s", "prompt": [{"type": "video"}]},
            (
                'params.prompt[0].type: unknown content type "video"; '
                'expected one of "audio", "image", "resource", "resource_link", "text"'
            ),
        ),
        (
            methods.SESSION_PROMPT,
            {"sessionId": "s", "prompt": [{"type": "resource", "resource": {"uri": "file:///a"}}]},
            'params.prompt[0].resource.text: required field is missing; send "text" or "blob"',
        ),
        (
            methods.SESSION_SET_CONFIG_OPTION,
            {"sessionId": "s", "configId": "c", "value": True},
            'params.value: expected a string, got a boolean (true); if it is meant as "boolean", say so in "type"',
        ),
        (
            methods.INITIALIZE,
            {"protocolVersion": "1"},
            'params.protocolVersion: expected an integer from 0 to 65535, got a string ("1")',
        ),
    ],
)
def test_error_message_shows_how_to_fix_the_call(method, params, message):
    error = refusal(method, params)
    assert str(error) == message
    assert error.message == f"Invalid params: {message}"
    assert error.code == ErrorCode.INVALID_PARAMS
    assert error.data["path"] == error.path
    assert error.data["expected"]
    assert error.data["got"]


@pytest.mark.parametrize("number", ["1", True, 1.5, -1, 65536, None, [1]])
def test_only_an_integer_in_range_is_a_protocol_version(number):
    assert refusal(methods.INITIALIZE, {"protocolVersion": number}).path == "params.protocolVersion"


def test_initialize_only_requires_the_version():
    request = decode_params(methods.INITIALIZE, b'{"protocolVersion":1,"fromTheFuture":true}')
    assert request == v1.InitializeRequest(protocol_version=1)


def test_stdio_server_can_name_its_type():
    server = {"type": "stdio", "name": "a", "command": "b", "args": [], "env": []}
    request = decode_params(methods.SESSION_NEW, as_json({"cwd": "/", "mcpServers": [server]}))
    assert request.mcp_servers == [v1.McpServerStdio(name="a", command="b", args=[], env=[])]


@each_row(
    "raw",
    [
        b'{"cwd":"\xff","mcpServers":[]}',
        b'{"cwd":"\xed\xa0\x80","mcpServers":[]}',
        rb'{"cwd":"\ud800","mcpServers":[]}',
        b'{"cwd":' + b"[" * 100_000,
        b'{"cwd":' + b"9" * 4_000 + b"}",
        b'{"cwd":' + b"9" * 9_000 + b"}",
        b'{"cwd":1e999}',
        b'{"cwd":NaN}',
        b'{"cwd":',
        b"{}{}",
        b"\x00",
    ],
)
def test_broken_json_raises_only_invalid_params(raw):
    error = refusal(methods.SESSION_NEW, raw)
    assert error.path.startswith("params")
    assert len(str(error)) < 300
    with pytest.raises(InvalidResultError):
        decode_result(methods.SESSION_NEW, raw)


@each_row("field", ["env", "headers", "_meta"])
@each_row("value", ["SECRET", {"A": "SECRET"}, ["SECRET"], [{"name": "A", "value": ["SECRET"]}], 5771])
def test_secrets_are_never_quoted(field, value):
    servers = [{"type": "http", "name": "a", "url": "u", "command": "c", "headers": [], "args": [], field: value}]
    if field != "env":
        servers[0].pop("command")
    for message in ({"cwd": "/", "mcpServers": servers}, {"cwd": "/", "mcpServers": as_json(servers).decode()}):
        try:
            decode_params(methods.SESSION_NEW, as_json(message))
        except InvalidParamsError as error:
            assert "SECRET" not in f"{error} {error.data} {error!r}"
            assert "5771" not in f"{error} {error.data}"


def test_long_values_are_cut():
    error = refusal(methods.INITIALIZE, {"protocolVersion": "x" * 10_000})
    assert len(error.problem) < 150


def test_null_result_is_empty_if_no_field_is_required():
    assert decode_result(methods.SESSION_LOAD, b"null") == v1.LoadSessionResponse()
    with pytest.raises(InvalidResultError, match="result: expected an object, got null"):
        decode_result(methods.SESSION_NEW, b"null")


def test_result_of_any_shape_is_passed_unchanged():
    assert decode_result(methods.PROXY_SUCCESSOR, b"null") is None
    assert decode_result(methods.PROXY_SUCCESSOR, b'{"tools":[]}') == {"tools": []}


def test_invalid_result_error_names_method_and_place():
    with pytest.raises(InvalidResultError) as caught:
        decode_result(methods.SESSION_PROMPT, b'{"stopReason":"bored"}')
    assert caught.value.method == "session/prompt"
    assert caught.value.problem.startswith('result.stopReason: unknown value "bored"; expected one of "cancelled"')


def test_unknown_permission_outcome_is_an_error():
    with pytest.raises(InvalidResultError, match="unknown outcome"):
        decode_result(methods.SESSION_REQUEST_PERMISSION, b'{"outcome":{"outcome":"approved"}}')


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def nearly_valid(draw):
    """Return a valid message with one member replaced by any value."""
    method = draw(st.sampled_from(METHODS))
    path, _, message = draw(st.sampled_from(_mutations(definition(method.params))))
    replaced = json.loads(json.dumps(message))
    parent = replaced
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = draw(json_values)
    return method, as_json(replaced)


_known: dict[str, list] = {}


def _mutations(name):
    if name not in _known:
        _known[name] = list(mutations(name)) or [(("_meta",), "wrong", {})]
    return _known[name]


@given(nearly_valid(), st.booleans())
def test_any_value_inside_a_message_is_accepted_or_refused(case, lenient):
    method, raw = case
    try:
        decoded = decode_params(method, raw, lenient=lenient)
    except InvalidParamsError as error:
        assert error.path.startswith("params")
    else:
        assert is_valid(definition(method.params), json.loads(encode(decoded))) or lenient


@given(st.sampled_from(METHODS), st.binary(max_size=40) | json_values.map(as_json), st.booleans())
def test_any_bytes_are_accepted_or_refused(method, raw, lenient):
    try:
        decode_params(method, raw, lenient=lenient)
    except InvalidParamsError as error:
        assert error.path.startswith("params")
