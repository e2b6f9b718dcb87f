"""The limits of requests, connections and the server, each with its reason."""

import msgspec

from dragoman.bridge.guard.rate_limit import Rate

KIB = 1024


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the application. The bridge's settings have the limits of messages and viewers."""

    body_timeout_s: float = 60.0
    """Time for the whole body of a request. A line of 10 Mbit/s sends 64 MiB in this time."""
    max_form_bytes: int = 4 * KIB
    """Longest body of a login or a link, which contains a token or a code."""
    max_render_bytes: int = 1024 * KIB
    """Longest text that is rendered for the page. The page shows longer texts unrendered."""
    keep_alive_s: float = 10.0
    """Interval of comments in a silent event stream. Proxies cut a silent stream after half a minute."""
    reattach_s: float = 20.0
    """Time that a viewer over HTTP stays open without a request, so that it can come back. Together with `silence_s`
    and `watch_s`, a dead viewer counts for 45 s at most."""
    max_streams: int = 1_000
    """Event streams of one viewer over HTTP: one per session."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the HTTP server and its TCP connections."""

    max_sockets: int = 4_096
    """TCP connections at a time. `serve` allows fewer if the process may open few files. At the limit, a new connection
    replaces the oldest one of the largest group: the anonymous connections, or the readers of one share."""
    max_http2_streams: int = 1_000
    """Requests at a time in one HTTP/2 connection: one event stream per session, like `max_streams`."""
    max_header_bytes: int = 32 * KIB
    """Headers of one request. On localhost a browser sends the cookies of every program that ever ran there."""
    frames: Rate = Rate(burst=2_000, per_s=200.0)
    """Frames without content on a connection with a credential: pings, settings, empty frames, tiny fragments, and more
    window updates than our frames cause. A normal client sends a few per second."""
    anonymous_frames: Rate = Rate(burst=200, per_s=20.0)
    """The same for an anonymous connection. These frames cost no more than accepting the connection."""
    idle_s: float = 60.0
    """A connection without a request is closed after this time. Unfinished headers and control frames of HTTP/2 do not
    count as requests."""
    ping_s: float = 10.0
    """Interval of pings on a silent WebSocket or HTTP/2 connection."""
    silence_s: float = 22.0
    """A connection without any answer for this time is dead. Two pings are lost by then."""
    watch_s: float = 2.0
    """Interval of the checks of all connections."""
    stop_s: float = 1.5
    """Time for open streams to end when the server stops. Then they are cut."""
    linger_s: float = 1.0
    """Time for a peer to read the last bytes of a closing connection. Then it is cut."""
    linger_bytes: int = 16 * 1024 * KIB
    """Bytes that are read and dropped during that time, because a reset would destroy the last bytes that we sent."""
