"""The parts of the server that do no I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bridge.front.limits import ServerLimits
from dragoman.bridge.front.server.http2_frames import (
    DATA,
    END_STREAM,
    HEADERS,
    RESET_COST,
    RST_STREAM,
    FrameHead,
    FrameScanner,
    cost_of,
)
from dragoman.bridge.front.server.tcp import Liveness, LivenessAction
from tests.bridge.front.raw_http2 import PREFACE, frame

# ── liveness ────────────────────────────────────────────────────────────────────────────────────────

LIMITS = ServerLimits(ping_s=10, silence_s=22)


def judge(liveness, now, unsent=0, *, can_ping=True):
    return liveness.judge(now, unsent, LIMITS, 30, can_ping=can_ping)


def test_a_silent_peer_is_pinged_and_cut_when_it_does_not_answer():
    liveness = Liveness(0)
    assert judge(liveness, 9) is LivenessAction.NOTHING
    assert judge(liveness, 10) is LivenessAction.PING
    assert judge(liveness, 12) is LivenessAction.NOTHING
    assert judge(liveness, 20) is LivenessAction.PING
    assert judge(liveness, 22) is LivenessAction.CUT


def test_a_peer_that_answers_is_left_alone():
    liveness = Liveness(0)
    for now in range(10, 1_000, 11):
        assert judge(liveness, now) is LivenessAction.PING
        liveness.heard(now + 1)


def test_a_peer_that_cannot_be_asked_is_never_silent():
    liveness = Liveness(0)
    assert {judge(liveness, now, can_ping=False) for now in range(0, 1_000, 2)} == {LivenessAction.NOTHING}


def test_a_peer_that_takes_nothing_is_cut_and_one_that_takes_slowly_is_not():
    stuck, slow = Liveness(0), Liveness(0)
    stuck.wrote(1_000)
    slow.wrote(1_000)
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
    """Give the heads in some data, and see that every step goes on."""
    at = 0
    while at < len(data):
        head, next_at = scanner.next(data, at)
        assert next_at > at
        at = next_at
        if head is not None:
            yield head
    assert at == len(data)


@given(st.lists(heads, max_size=20), st.data())
def test_frames_are_found_wherever_the_bytes_are_cut(expected, data):
    stream = PREFACE + b"".join(
        frame(head.kind, b"x" * head.length, flags=head.flags, stream=head.stream_id) for head in expected
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    scanner = FrameScanner(len(PREFACE))
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += scan(scanner, stream[start:end])
    assert found == expected


@pytest.mark.parametrize(
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
def test_a_frame_is_charged_for_what_it_does_not_carry(head, cost):
    assert cost_of(head, lambda stream: stream == 1) == cost
