import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.store.record import KINDS, Header, decode_header, decode_records, sealed_end
from tests.store.version1_files import encode_header, encode_write

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT | st.just("crc"), inner),
    max_leaves=10,
)
PAYLOAD = JSON.map(msgspec.json.encode) | JSON.map(lambda value: json.dumps(value).encode())
WRITES = st.lists(st.lists(st.tuples(st.sampled_from(sorted(KINDS)), PAYLOAD), min_size=1, max_size=5), max_size=5)


@given(WRITES)
def test_what_is_encoded_is_lines_of_json_and_is_decoded_to_the_byte(writes):
    log, seq = b"", 0
    for write in writes:
        log += encode_write(write, seq, 1_763_240_000_000)
        seq += len(write)
    assert all(list(json.loads(line))[:2] == ["seq", "time"] for line in log.splitlines())
    assert sealed_end(log) == (len(log), False)
    records = decode_records(log, 0)
    assert [(record.kind, bytes(record.data)) for record in records] == [kept for write in writes for kept in write]
    assert [record.seq for record in records] == list(range(1, seq + 1))


@given(TEXT, st.lists(TEXT), st.none() | TEXT)
def test_a_header_is_decoded_as_it_was_encoded(cwd, directories, forked_from):
    header = Header("id", cwd, directories, "2026-01-01T00:00:00Z", forked_from)
    line = encode_header(header)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_header(line) == header


@given(st.binary())
def test_bytes_that_are_no_header_are_refused(line):
    with pytest.raises(ValueError, match="no header"):
        decode_header(line)


def test_a_payload_that_looks_like_a_seal_is_none():
    payloads = [b'{"x":1,"crc":"89abcdef"}', b'"\\",\\"crc\\":\\"89abcdef\\"}"', b'",\\"crc\\":\\"89abcdef"']
    log = encode_write([("update", payload) for payload in payloads], 0, 5)
    assert sealed_end(log) == (len(log), False)
    assert [bytes(record.data) for record in decode_records(log, 0)] == payloads


def test_records_that_do_not_follow_each_other_are_refused():
    one = encode_write([("update", b"1")], 0, 5)
    two = encode_write([("update", b"2")], 1, 5)
    for log in (one + one, two, two + one, one + encode_write([("update", b"3")], 2, 5)):
        with pytest.raises(ValueError, match="missing or out of order"):
            decode_records(log, 0)
