"""Whether the peer of a connection is alive, and whether it reads.

Input shows that a peer is alive. WebSockets and HTTP/2 have a ping, which every peer must answer. HTTP/1.1 has none, so
TCP finds out: a machine that is gone does not acknowledge the comments in the event stream. A buffer that gets smaller
shows that a peer reads.
"""

import socket
from enum import Enum

from dragoman.bridge.front.limits import ServerLimits


class LivenessAction(Enum):
    """The action that a connection needs."""

    NOTHING = "nothing"
    PING = "ping"
    CUT = "cut"


class Liveness:
    """The times of the last input, of the last ping, and of the last bytes that the peer read."""

    def __init__(self, now: float) -> None:
        self._heard_at = now
        self._taken_at = now
        self._pinged_at = 0.0
        self._written_bytes = 0
        self._taken_bytes = 0
        self._unsent_bytes = 0

    def heard(self, now: float) -> None:
        """Note the time of input."""
        self._heard_at = now

    def wrote(self, size: int) -> None:
        """Count bytes that are written."""
        self._written_bytes += size

    def judge(
        self, now: float, unsent_bytes: int, limits: ServerLimits, stall_s: float, *, can_ping: bool
    ) -> LivenessAction:
        """Return the action that the connection needs now; after PING the ping counts as sent."""
        # Bytes that were written and are not in the buffer any more have left to the peer. A buffer that is empty, or
        # that got smaller, shows that the peer reads.
        taken = self._written_bytes - unsent_bytes
        if taken > self._taken_bytes or unsent_bytes == 0:
            self._taken_at = now
        if taken > self._taken_bytes and self._unsent_bytes > 0:
            self._heard_at = now  # a peer that reads a full buffer is alive too
        self._taken_bytes, self._unsent_bytes = taken, unsent_bytes
        # Silence counts only after a ping: without one, nobody asked the peer for an answer.
        is_silent = self._pinged_at > self._heard_at and now - self._heard_at >= limits.silence_s
        if is_silent or now - self._taken_at >= stall_s:
            return LivenessAction.CUT
        if can_ping and unsent_bytes == 0 and now - max(self._heard_at, self._pinged_at) >= limits.ping_s:
            self._pinged_at = now
            return LivenessAction.PING
        return LivenessAction.NOTHING


def watch_peers(listening: socket.socket, limits: ServerLimits) -> None:
    """Let TCP detect machines that are gone; accepted sockets inherit the options."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silence_s, ping_s = int(limits.silence_s), int(limits.ping_s)
    options = {"TCP_KEEPIDLE": ping_s, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": silence_s * 1000}
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has all of them
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), max(1, value))
