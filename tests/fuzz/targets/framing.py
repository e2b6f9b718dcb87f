"""Bytes in arbitrary pieces to lines to messages: the same lines for any pieces, and a verdict on each line.

The verdict is compared with the standard library. A line that it cannot parse must not be a message, and a line that it
parses as an envelope must be one.
"""

import json
import re

from msgspec import UNSET

from dragoman.errors import ErrorCode
from dragoman.wire import MAX_LINE_BYTES, MAX_NESTING, LineSplitter, Malformed, Message, Oversized, parse

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_HUGE_INTEGER = re.compile(rb"\d{4000}")
_REFUSALS = {ErrorCode.PARSE_ERROR, ErrorCode.INVALID_REQUEST}


def check(data):
    """Check a stream as a whole and in many pieces."""
    whole = _split(data, [], MAX_LINE_BYTES)
    assert whole == _reference(data, MAX_LINE_BYTES)
    assert _split(data, range(0, len(data), len(data) // 64 + 1), MAX_LINE_BYTES) == whole
    for line in whole:
        check_line(line)


def check_made(provider):
    """Check a stream with pieces and a limit of the fuzzer's choice."""
    limit = provider.ConsumeIntInRange(1, 64)
    cuts = sorted(provider.ConsumeIntListInRange(provider.ConsumeIntInRange(0, 8), 0, 512))
    data = provider.ConsumeBytes(provider.remaining_bytes())
    lines = _split(data, cuts, limit)
    assert lines == _reference(data, limit)
    for line in lines:
        check_line(line)


def check_line(line):
    """Check that one line is a message or a refusal, as it should be."""
    message = parse(line)
    if isinstance(message, Malformed):
        assert message.code in _REFUSALS
        assert message.problem
        json.loads(message.id)
    else:
        assert isinstance(message, Message)
        assert message.method is not None or message.result is not UNSET or message.error is not UNSET
    if isinstance(line, bytes):
        _compare(line, message)


def _compare(line, message):
    fields = _read(line)
    if fields is None:
        assert isinstance(message, Malformed), "a message that the standard library cannot read"
    elif not _has_own_rules(line):
        assert _is_envelope(fields) == isinstance(message, Message), message
        if isinstance(message, Message) and message.id is not UNSET:
            assert json.loads(bytes(message.id)) == fields["id"]


def _read(line):
    try:
        return json.loads(line.decode(), parse_constant=_refuse)
    except RecursionError:
        return {}
    except ValueError:
        return None


def _refuse(constant):
    raise ValueError(constant)


def _has_own_rules(line):
    """Return whether the two libraries may differ: surrogates, huge numbers, deep nesting or repeated keys."""
    return bool(
        _SURROGATE.search(line)
        or _HUGE_INTEGER.search(line)
        or b"e" in re.sub(rb'"(?:[^"\\]|\\.)*+"?', b"", line).lower().replace(b"true", b"").replace(b"false", b"")
        or line.count(b"[") + line.count(b"{") > MAX_NESTING
        or _repeats_a_key(line)
    )


def _repeats_a_key(line):
    repeated = []

    def note(pairs):
        repeated.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)

    json.loads(line, object_pairs_hook=note)
    return any(repeated)


def _is_envelope(fields):
    if not isinstance(fields, dict) or fields.get("jsonrpc") != "2.0":
        return False
    has_id = (
        "id" in fields and isinstance(fields["id"], str | int | float | None) and not isinstance(fields["id"], bool)
    )
    if fields.get("method") is not None:
        return isinstance(fields["method"], str) and (has_id or "id" not in fields)
    return has_id and ("result" in fields or fields.get("error") is not None)


def _split(data, cuts, limit):
    splitter = LineSplitter(max_bytes=limit)
    lines, start = [], 0
    for cut in [*cuts, len(data)]:
        lines += splitter.feed(data[start:cut])
        start = max(start, min(cut, len(data)))
        assert splitter._held_bytes <= limit  # noqa: SLF001 - the bound on memory shows nowhere else
        assert sum(map(len, splitter._parts)) == splitter._held_bytes  # noqa: SLF001
    return lines + splitter.finish()


def _reference(data, limit):
    lines = [line if len(line) <= limit else Oversized.of(line, limit) for line in data.split(b"\n")]
    return [line for line in lines if isinstance(line, Oversized) or line.strip()]
