import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.errors import ErrorCode, InvalidParamsError, MethodNotFoundError, RpcError
from dragoman.wire import MAX_NESTING, Malformed, Message, Oversized, error_object, parse
from dragoman.wire.message import MAX_MESSAGE
from tests.table import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def malformed(line: bytes) -> Malformed:
    message = parse(line)
    assert isinstance(message, Malformed)
    return message


def test_request_keeps_the_bytes_of_its_id_and_params():
    message = parse(b'{"jsonrpc":"2.0","id":"a b","method":"m","params":{"x": [1,  2], "y":null}}')
    assert isinstance(message, Message)
    assert bytes(message.id) == b'"a b"'
    assert bytes(message.params) == b'{"x": [1,  2], "y":null}'


@pytest.mark.parametrize("given_id", [b"0", b"-7", b'"x"', b"null", b"1.5", b"123456789012345678901234567890"])
def test_ids_may_be_numbers_strings_or_null(given_id):
    message = parse(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % given_id)
    assert isinstance(message, Message)
    assert bytes(message.id) == given_id


@pytest.mark.parametrize("given_id", [b"true", b"false", b"[1]", b'{"a":1}'])
def test_other_ids_are_refused_under_the_null_id(given_id):
    refusal = malformed(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % given_id)
    assert (refusal.code, refusal.id) == (ErrorCode.INVALID_REQUEST, b"null")
    assert "id" in refusal.problem


@each_row(
    "line",
    [
        b"hello",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":NaN}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[Infinity]}',
        b'{"jsonrpc":"1.0","id":1',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}',
        b'{"jsonrpc":"2.0","id":01,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m"} trailing',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"deep":"\xc3\x28"}}',
        b"\x00\x01\x02",
    ],
)
def test_invalid_json_or_utf8_is_a_parse_error(line):
    assert malformed(line).code == ErrorCode.PARSE_ERROR


@pytest.mark.parametrize("line", [b"1", b'"text"', b"null", b"true", b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"m"}]'])
def test_json_that_is_not_an_object_is_an_invalid_request(line):
    assert malformed(line).code == ErrorCode.INVALID_REQUEST


def test_batch_is_refused_with_a_reason():
    assert "batches" in malformed(b'[{"jsonrpc":"2.0","id":1,"method":"m"}]').problem


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"id":7,"method":"m"}', "jsonrpc"),
        (b'{"jsonrpc":"1.0","id":7,"method":"m"}', "jsonrpc"),
        (b'{"jsonrpc":2.0,"id":7,"method":"m"}', "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', "method"),
        (b'{"jsonrpc":"2.0","id":7}', "method"),
        (b'{"jsonrpc":"2.0","id":7,"method":null}', "method"),
    ],
)
def test_bad_envelope_is_answered_under_its_id(line, problem):
    refusal = malformed(line)
    assert (refusal.code, refusal.id, refusal.answerable) == (ErrorCode.INVALID_REQUEST, b"7", True)
    assert problem in refusal.problem


@pytest.mark.parametrize(
    "line",
    [b'{"id":7,"result":{}}', b'{"jsonrpc":"2.0","result":1}', b'{"jsonrpc":"2.0","id":[],"error":{}}'],
)
def test_malformed_response_is_never_answered(line):
    assert not malformed(line).answerable


def test_null_result_is_a_result():
    message = parse(b'{"jsonrpc":"2.0","id":1,"result":null}')
    assert isinstance(message, Message)
    assert bytes(message.result) == b"null"


def test_null_error_next_to_a_result_is_ignored():
    message = parse(b'{"jsonrpc":"2.0","id":1,"result":1,"error":null}')
    assert isinstance(message, Message)
    assert message.error is UNSET


def test_last_of_duplicate_keys_counts():
    message = parse(b'{"jsonrpc":"2.0","method":"first","method":"second"}')
    assert isinstance(message, Message)
    assert message.method == "second"


def nested(depth: int, before: bytes = b'"id":7,"method":"m","params":', after: bytes = b"") -> bytes:
    """Build a message whose deepest value is `depth` levels below the top."""
    return b'{"jsonrpc":"2.0",' + before + b"[" * (depth - 1) + b"]" * (depth - 1) + after + b"}"


def test_nesting_up_to_the_limit_passes():
    assert isinstance(parse(nested(MAX_NESTING)), Message)


DEPTHS = [MAX_NESTING + 1, 1_000, 10_000, 1_000_000]


@each_row("depth", DEPTHS)
@each_row(("before", "after"), [(b'"id":"a","method":"m","params":', b""), (b'"method":"m","params":', b',"id":"a"')])
def test_deeper_nesting_is_refused_under_its_id(depth, before, after):
    refusal = malformed(nested(depth, before, after))
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert "nested" in refusal.problem
    assert (refusal.id, refusal.answerable) == (b'"a"', True)


@each_row("depth", DEPTHS)
@each_row(("before", "after"), [(b'"id":3,"result":', b""), (b'"error":', b',"id":3')])
def test_response_nested_too_deeply_names_its_call_and_gets_no_answer(depth, before, after):
    refusal = malformed(nested(depth, before, after))
    assert (refusal.id, refusal.answerable) == (b"3", False)


@pytest.mark.parametrize("depth", [10_000, 1_000_000])
def test_notification_nested_too_deeply_gets_no_answer(depth):
    assert not malformed(nested(depth, b'"method":"m","params":')).answerable


def test_brackets_side_by_side_or_in_strings_are_not_nesting():
    params = json.dumps({"flat": [[] for _ in range(1_000)], "text": "[" * 1_000 + '\\"' + "{" * 1_000})
    assert isinstance(parse(b'{"jsonrpc":"2.0","method":"m","params":%b}' % params.encode()), Message)


@pytest.mark.parametrize("branch", [b"[],", b"[[[]]],", b"[" * 60 + b"]" * 60 + b","])
def test_nesting_after_closed_branches_is_found(branch):
    line = b'{"jsonrpc":"2.0","id":7,"method":"m","params":' + (b"[" + branch) * 300 + b"0" + b"]" * 300 + b"}"
    assert "nested" in malformed(line).problem


def test_unterminated_string_with_a_megabyte_of_quotes_is_fast():
    assert malformed(b"[" * 201 + b'"' + b'\\"' * 500_000).code == ErrorCode.INVALID_REQUEST


def test_megabytes_of_allowed_nesting_pass():
    tower = b"[" * 150 + b"]" * 150
    line = b'{"jsonrpc":"2.0","method":"m","params":[' + b",".join([tower] * 5_000) + b"]}"
    assert isinstance(parse(line), Message)


def test_oversized_line_is_an_invalid_request_that_names_the_limit():
    refusal = parse(Oversized(1024))
    assert isinstance(refusal, Malformed)
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert "1024" in refusal.problem
    assert (refusal.id, refusal.answerable) == (b"null", True)


@each_row(
    ("line", "id_", "answerable"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":"%b"}', b"7", True),
        (b'{"jsonrpc":"2.0","method":"m","params":"%b","id":"x"}', b'"x"', True),
        (b'{"jsonrpc":"2.0","id":7,"result":"%b"}', b"7", False),
        (b'{"jsonrpc":"2.0","method":"m","params":"%b"}', b"null", False),
        (b'{"jsonrpc":"2.0","id":true,"method":"m","params":"%b"}', b"null", True),
        (b'{"jsonrpc":"2.0","id":007,"method":"m","params":"%b"}', b"null", True),
        (b'{"jsonrpc":"2.0","id":"\\x","method":"m","params":"%b"}', b"null", True),
        (b'{"jsonrpc":"2.0","id":"\xff","method":"m","params":"%b"}', b"null", True),
        (b"%b", b"null", True),
    ],
)
def test_oversized_message_is_refused_under_its_id(line, id_, answerable):
    refusal = parse(Oversized.of(line % (b"x" * 10_000), 1_024))
    assert isinstance(refusal, Malformed)
    assert (refusal.id, refusal.answerable) == (id_, answerable)


MODE = "there is no mode 'zzz'; expected one of ask, code, plan"


@each_row(
    ("error", "message"),
    [
        (InvalidParamsError("params.modeId", MODE, expected="ask, code, plan"), f"Invalid params: {MODE}"),
        (
            RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"problem": "no such file", "n": 1}),
            "Resource not found: no such file",
        ),
        (
            RpcError(ErrorCode.INTERNAL_ERROR, "the disk is full\n\n  free some "),
            "Internal error: the disk is full free some",
        ),
        (RpcError(ErrorCode.INVALID_REQUEST, "no", phrase="Not allowed"), "Not allowed: no"),
        (RpcError(ErrorCode.REQUEST_CANCELLED), "Request cancelled"),
        (RpcError(ErrorCode.INTERNAL_ERROR, {"n": 1}), "Internal error"),
        (RpcError(ErrorCode.INTERNAL_ERROR, " \n"), "Internal error"),
        (RpcError(-31999, "odd"), "Error: odd"),
        (MethodNotFoundError("session/fly"), "Method not found: session/fly"),
        (MethodNotFoundError("a\x1b[31mb\u202ec"), r"Method not found: a\x1b[31mb\u202ec"),
    ],
)
def test_error_message_is_phrase_and_sentence_on_one_safe_line(error, message):
    assert error_object(error).message == message


def test_huge_value_does_not_make_the_message_huge():
    error = InvalidParamsError("params.cwd", f"expected a path, got {'x' * 5_000_000}")
    message = error_object(error).message
    assert len(message) == MAX_MESSAGE
    assert message.startswith("Invalid params: expected a path, got xxx")
    assert message.endswith("…")


@given(st.binary())
def test_any_bytes_parse_to_a_message_or_a_refusal(line):
    assert isinstance(parse(line), Message | Malformed)


@given(JSON)
def test_any_json_parses_to_a_message_or_a_refusal(value):
    assert isinstance(parse(json.dumps(value).encode()), Message | Malformed)


@given(JSON, st.one_of(st.integers(), st.text(), st.none()))
def test_any_request_keeps_its_bytes(params, request_id):
    raw_params, raw_id = json.dumps(params).encode(), json.dumps(request_id).encode()
    message = parse(b'{"jsonrpc":"2.0","id":%b,"method":"m","params":%b}' % (raw_id, raw_params))
    if b"\\ud" in raw_params + raw_id:
        return  # it may contain a lone surrogate, which is refused
    assert isinstance(message, Message)
    assert (bytes(message.id), bytes(message.params)) == (raw_id, raw_params)
