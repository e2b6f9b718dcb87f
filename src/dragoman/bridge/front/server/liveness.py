"""Whether the other side of a connection is there, and whether it takes what is sent.

Who is there is known by what arrives. WebSockets and HTTP/2 have a frame to ask with, which everybody must answer; in
HTTP/1.1 there is none, so there it is TCP that asks: a machine that is gone does not acknowledge the comments in the
event stream. Who takes what is sent is known by what leaves.
"""

import socket
from enum import Enum

from dragoman.bridge.front.limits import ServerLimits


class Verdict(Enum):
    """What is to be done about a connection."""

    NOTHING = "nothing"
    PING = "ping"
    CUT = "cut"


class Liveness:
    """When a connection last heard something, and when the other side last took something."""

    def __init__(self, now: float) -> None:
        self._heard_at = now
        self._taken_at = now
        self._pinged_at = 0.0
        self._written_bytes = 0
        self._taken_bytes = 0
        self._unsent_bytes = 0

    def heard(self, now: float) -> None:
        """Take note that something arrived."""
        self._heard_at = now

    def wrote(self, size: int) -> None:
        """Take note that something is to be sent."""
        self._written_bytes += size

    def judge(self, now: float, unsent_bytes: int, limits: ServerLimits, stall_s: float, *, can_ping: bool) -> Verdict:
        """Say what is to be done now; a ping counts as sent when that is the answer."""
        taken = self._written_bytes - unsent_bytes
        if taken > self._taken_bytes or unsent_bytes == 0:
            self._taken_at = now
        if taken > self._taken_bytes and self._unsent_bytes > 0:
            self._heard_at = now  # to take what was in the way is a sign of life as well
        self._taken_bytes, self._unsent_bytes = taken, unsent_bytes
        is_silent = self._pinged_at > self._heard_at and now - self._heard_at >= limits.silence_s
        if is_silent or now - self._taken_at >= stall_s:
            return Verdict.CUT
        if can_ping and unsent_bytes == 0 and now - max(self._heard_at, self._pinged_at) >= limits.ping_s:
            self._pinged_at = now
            return Verdict.PING
        return Verdict.NOTHING


def watch_peers(listening: socket.socket, limits: ServerLimits) -> None:
    """Have TCP itself find out about machines that are gone; whatever is accepted here inherits it."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silence_s, ping_s = int(limits.silence_s), int(limits.ping_s)
    options = {"TCP_KEEPIDLE": ping_s, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": silence_s * 1000}
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has all of them
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), max(1, value))
