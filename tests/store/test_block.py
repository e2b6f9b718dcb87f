import json
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocol.update_lines import update_lines
from dragoman.store.block import (
    KINDS,
    Draft,
    Header,
    decode_header,
    encode_header,
    find_blocks,
    read_torn,
)
from tests.table import each_row

ONE = "00000000-0000-4000-8000-000000000001"
TWO = "00000000-0000-4000-8000-000000000002"
TIME = 1_763_240_000_000
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT | st.sampled_from(["seal", "turn"]), inner),
    max_leaves=10,
)
PAYLOAD = JSON.map(msgspec.json.encode) | JSON.map(lambda value: json.dumps(value).encode())
LINES = st.lists(st.tuples(st.sampled_from(["update", *sorted(KINDS)]), PAYLOAD), min_size=1, max_size=6)
SMALL = [
    [("update", b'{"n":1}'), ("turn", b"{}")],
    [("update", '"\u2028 \u0085 č"'.encode())],
    [("turn", b"1"), ("update", b"2"), ("title", b'"t"')],
]


def draft_of(lines, session_id=ONE):
    draft = Draft()
    for kind, data in lines:
        if kind == "update":
            draft.add_lines(update_lines(session_id, [data]))
        else:
            draft.add_record(kind, data)
    return draft


def encode(blocks, checksum=0, first=1):
    parts = []
    for lines in blocks:
        part, checksum = draft_of(lines).seal(first, TIME, checksum)
        parts.append(bytes(part))
        first += len(lines)
    return parts


def line_of(kind, data):
    return update_lines(ONE, [data]) if kind == "update" else b'{"%b":%b}\n' % (kind.encode(), data)


def decode(blocks):
    """Return the lines of the drafts of blocks."""
    return [
        [(record.kind, bytes(record.data)) for record in block.records()] + [bytes(run) for run in block.updates()]
        for block in blocks
    ]


@given(st.lists(LINES, max_size=5))
def test_blocks_are_json_lines_and_are_read_back_unchanged(writes):
    log = b"".join(encode(writes))
    kinds = [next(iter(json.loads(line))) for line in log.split(b"\n")[:-1]]
    assert kinds.count("seal") == len(writes)
    found, damaged = find_blocks(log, 1, 0)
    assert (found.end, damaged) == (len(log), False)
    assert [block.lines for block in found.blocks] == [b"".join(line_of(*line) for line in lines) for lines in writes]
    seq = 0
    for block, lines in zip(found.blocks, writes, strict=True):
        assert (block.first, block.last, block.time) == (seq + 1, seq + len(lines), TIME)
        numbered = list(enumerate(lines, seq + 1))
        seq = block.last
        records = [(number, kind, data) for number, (kind, data) in numbered if kind != "update"]
        assert [(record.seq, record.kind, bytes(record.data)) for record in block.records()] == records
        updates = b"".join(line_of(*line) for line in lines if line[0] == "update")
        assert b"".join(block.updates()) == updates
        assert list(block.numbered_lines()) == [(number, line_of(*line)[:-1]) for number, line in numbered]


def test_consecutive_updates_are_one_run():
    [part] = encode([[("turn", b"1"), ("update", b"1"), ("update", b"2"), ("turn", b"2"), ("update", b"3")]])
    [block] = find_blocks(part, 1, 0)[0].blocks
    assert [bytes(run) for run in block.updates()] == [update_lines(ONE, [b"1", b"2"]), update_lines(ONE, [b"3"])]


def test_a_block_of_records_has_nothing_for_the_peer():
    [part] = encode([[("turn", b"1"), ("title", b"2")]])
    assert find_blocks(part, 1, 0)[0].blocks[0].updates() == []


def test_a_changed_bit_is_found_and_blocks_before_it_are_good():
    parts = encode(SMALL)
    log = b"".join(parts)
    whole = decode(find_blocks(log, 1, 0)[0].blocks)
    ends = [len(b"".join(parts[: number + 1])) for number in range(len(parts))]
    for at in range(len(log)):
        for bit in range(8):
            broken = log[:at] + bytes([log[at] ^ 1 << bit]) + log[at + 1 :]
            found, damaged = find_blocks(broken, 1, 0)
            good = sum(end <= at for end in ends)
            assert decode(found.blocks) == whole[:good]
            assert found.end == ([0, *ends])[good]
            # A last seal without its newline may be incomplete.
            assert damaged or good == len(parts) - 1


def test_a_log_cut_at_any_byte_has_its_whole_blocks():
    parts = encode(SMALL)
    log = b"".join(parts)
    ends = [len(b"".join(parts[: number + 1])) for number in range(len(parts))]
    for cut in range(len(log) + 1):
        found, damaged = find_blocks(log[:cut], 1, 0)
        assert len(found.blocks) == sum(end <= cut for end in ends)
        assert not damaged
        rest = log[found.end : cut]
        torn = read_torn(rest[: rest.rfind(b"\n") + 1], 1, TIME)
        assert (torn.lines if torn else b"") == rest[: rest.rfind(b"\n") + 1]


@pytest.mark.parametrize("order", [(1,), (0, 0), (0, 2), (1, 0), (0, 2, 1)])
def test_a_block_out_of_order_is_damage(order):
    parts = encode(SMALL)
    found, damaged = find_blocks(b"".join(parts[number] for number in order), 1, 0)
    assert damaged
    assert [block.first for block in found.blocks] == ([1] if order[0] == 0 else [])


def test_a_block_from_another_log_is_damage():
    mine = encode(SMALL)
    other = encode([[("update", b'{"n":9}'), ("turn", b"{}")], *SMALL[1:]])
    found, damaged = find_blocks(mine[0] + other[1], 1, 0)
    assert (len(found.blocks), damaged) == (1, True)


def test_a_gap_in_the_numbers_is_damage():
    [part] = encode(SMALL[:1], first=2)
    assert find_blocks(part, 1, 0)[1]


@pytest.mark.parametrize("places", [b"[[0,5]", b"[[9999,1]]", b"[[5,5],[0,3]]", b"[[0,0]]", b"[[1]]", b"[0]"])
def test_impossible_places_of_records_are_damage(places):
    body = b'{"turn":1}\n\t{"seal":{"first":1,"last":1,"time":5,"records":%b' % places
    assert find_blocks(b'%b,"sum":"%08x"}}\n' % (body, crc32(body)), 1, 0)[1]


@pytest.mark.parametrize(
    "data",
    [
        b'{"seal":{"first":1,"last":1,"time":5,"sum":"00000000"}}',
        b'"\\n\\t{\\"seal\\":{\\"first\\":1"',
        '"\u2028{\\"seal\\":"'.encode(),
        b'{\t"seal":\t1}',
        b'"\\r\\n"',
    ],
)
def test_text_like_a_seal_inside_a_line_is_not_a_seal(data):
    log = b"".join(encode([[("update", data), ("turn", data)], [("update", data)]]))
    found, damaged = find_blocks(log, 1, 0)
    assert (len(found.blocks), found.end, damaged) == (2, len(log), False)


@each_row(
    "lines",
    [
        b"",
        b"\n",
        b'{"seal":{}}\n',
        b'\t{"seal":{}}\n',
        b' {"jsonrpc":"2.0"}\n',
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0"}\n{"seal":{}}\n',
        b'{"jsonrpc":"2.0"}\n\n',
        b'{"jsonrpc":\n"2.0"}\n',
    ],
)
def test_a_line_without_the_wire_prefix_is_refused(lines):
    draft = Draft()
    with pytest.raises(ValueError, match="must start with"):
        draft.add_lines(lines)
    assert len(draft) == 0


@each_row(
    "lines",
    [
        b"{}\n",
        b"null\n",
        b"\0\n",
        b'{"jsonrpc":"2.0"\n',
        b'{"jsonrpc":"\xff"}\n',
        b'{"mcp":{}}\n',
        b'{"turn":1,"title":2}\n',
        b'{ "turn":1}\n',
        b'\t{"seal":{}}\n',
        b'{"turn":1}\n\t{"seal":{}}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_foreign_lines_after_the_last_seal_are_refused(lines):
    with pytest.raises((ValueError, RecursionError)):
        read_torn(lines, 1, TIME)


def test_whole_lines_after_the_last_seal_are_an_unsealed_block():
    lines = b"".join(line_of(*line) for line in SMALL[2])
    block = read_torn(lines, 7, TIME)
    assert (block.first, block.last, block.lines) == (7, 9, lines)
    assert [(record.seq, record.kind) for record in block.records()] == [(7, "turn"), (9, "title")]
    assert read_torn(b"", 7, TIME) is None


@given(TEXT, st.lists(TEXT), st.none() | TEXT)
def test_a_header_survives_encoding_and_decoding(cwd, directories, forked_from):
    header = Header("id", cwd, directories, "2026-01-01T00:00:00Z", forked_from)
    block, checksum = encode_header(header, TIME)
    assert block.count(b"\n") == 2
    assert decode_header(block) == (header, checksum)


@given(st.binary())
def test_bytes_that_are_not_a_header_are_refused(block):
    with pytest.raises(ValueError, match="not a session log header"):
        decode_header(block)


def test_errors_name_another_format_or_damage_of_a_header():
    block, _ = encode_header(Header(ONE, "/", [], "2026-01-01T00:00:00Z"), TIME)
    with pytest.raises(ValueError, match="it has format 3"):
        decode_header(block.replace(b'"dragoman":1', b'"dragoman":3'))
    with pytest.raises(ValueError, match="its header is damaged"):
        decode_header(block.replace(b'"cwd":"/"', b'"cwd":"."'))


def test_block_is_ordinary_only_if_all_its_lines_are():
    line = b'{"jsonrpc":"2.0","method":"session/update"}\n'
    ordinary, mixed = Draft(), Draft()
    ordinary.add_lines(line, is_ordinary=True)
    mixed.add_lines(line)
    mixed.add_lines(line, is_ordinary=True)
    assert (ordinary.is_ordinary, mixed.is_ordinary) == (True, False)
    ordinary.add_draft(mixed)
    assert not ordinary.is_ordinary
