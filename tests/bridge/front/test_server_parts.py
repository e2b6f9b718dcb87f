"""The parts of the server that do no I/O."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.bridge.front.limits import ServerLimits
from dragoman.bridge.front.server.http2_frames import (
    DATA,
    END_STREAM,
    HEADERS,
    RESET_COST,
    FrameHead,
    FrameScanner,
    cost_of,
)
from dragoman.bridge.front.server.tcp import Liveness, LivenessAction
from tests.bridge.front.raw_http2 import PREFACE, RST_STREAM, frame
from tests.table import each_row

# ── liveness ────────────────────────────────────────────────────────────────────────────────────────

LIMITS = ServerLimits(ping_s=10, silence_s=22)


def judge(liveness, now, unsent=0, *, can_ping=True):
    return liveness.judge(now, unsent, LIMITS, 30, can_ping=can_ping)


def test_silent_peer_is_pinged_then_cut():
    liveness = Liveness(0)
    assert judge(liveness, 9) is LivenessAction.NOTHING
    assert judge(liveness, 10) is LivenessAction.PING
    assert judge(liveness, 12) is LivenessAction.NOTHING
    assert judge(liveness, 20) is LivenessAction.PING
    assert judge(liveness, 22) is LivenessAction.CUT


def test_responsive_peer_is_kept():
    liveness = Liveness(0)
    for now in range(10, 1_000, 11):
        assert judge(liveness, now) is LivenessAction.PING
        liveness.record_input(now + 1)


def test_peer_without_pings_is_never_silent():
    liveness = Liveness(0)
    assert {judge(liveness, now, can_ping=False) for now in range(0, 1_000, 2)} == {LivenessAction.NOTHING}


def test_stalled_peer_is_cut_but_a_slow_one_is_kept():
    stuck, slow = Liveness(0), Liveness(0)
    stuck.record_output(1_000)
    slow.record_output(1_000)
    assert judge(stuck, 2, 900) is LivenessAction.NOTHING
    assert judge(stuck, 31, 900) is LivenessAction.NOTHING
    assert judge(stuck, 32, 900) is LivenessAction.CUT
    for now in range(2, 200, 2):
        assert judge(slow, now, 1_000 - now) is LivenessAction.NOTHING


# ── frames of HTTP/2 ────────────────────────────────────────────────────────────────────────────────

heads = st.builds(
    FrameHead,
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(0, 300),
    st.integers(0, 2**31 - 1),
)


def scan(scanner, data):
    """Return the heads in some data, and check that every step advances."""
    at = 0
    while at < len(data):
        head, next_at = scanner.next(data, at)
        assert next_at > at
        at = next_at
        if head is not None:
            yield head
    assert at == len(data)


@given(st.lists(heads, max_size=20), st.data())
def test_frame_heads_are_found_in_any_pieces(expected, data):
    stream = PREFACE + b"".join(
        frame(head.kind, b"x" * head.length, flags=head.flags, stream=head.stream_id) for head in expected
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    scanner = FrameScanner(len(PREFACE))
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += scan(scanner, stream[start:end])
    assert found == expected


@each_row(
    ("head", "cost"),
    [
        (FrameHead(HEADERS, 0, 0, 1), 0),
        (FrameHead(DATA, 0, 0, 1), 1),
        (FrameHead(DATA, 0, 63, 1), 1),
        (FrameHead(DATA, 0, 64, 1), 0),
        (FrameHead(DATA, END_STREAM, 0, 1), 0),
        (FrameHead(RST_STREAM, 0, 4, 1), RESET_COST),
        (FrameHead(RST_STREAM, 0, 4, 3), 1),
        (FrameHead(0x4, 0, 0, 0), 1),
        (FrameHead(0xAA, 0, 0, 0), 1),
    ],
)
def test_frames_without_content_have_a_cost(head, cost):
    assert cost_of(head, lambda stream: stream == 1) == cost
