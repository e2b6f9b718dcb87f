"""The limits of requests, connections and the server, each with its reason."""

import msgspec

from dragoman.bridge.guard.rate_limit import Rate

KIB = 1024


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the application; those of messages and viewers are the bridge's own settings."""

    body_timeout_s: float = 30.0
    """Time for the whole body of a request: a slow line sends 16 MiB in it, a stuck client never does."""
    max_form_bytes: int = 4 * KIB
    """Longest body of a login or a link, which has a token or a code."""
    max_render_bytes: int = 1024 * KIB
    """Longest text that is rendered for the page; the page shows longer ones as they are."""
    keep_alive_s: float = 10.0
    """How often an event stream without events sends a comment: proxies cut a silent one after half a minute."""
    reattach_s: float = 20.0
    """How long a viewer over HTTP outlives its last stream and request: time enough to come back. With `silence_s` and
    `watch_s` a dead viewer counts for 45 s at most."""
    max_streams: int = 1_000
    """Event streams of one viewer over HTTP: one for each session."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the server, for its TCP connections."""

    max_sockets: int = 4_096
    """TCP connections at a time; more would meet the usual limit of open files. A further one closes the oldest
    connection that never had a credential."""
    max_http2_streams: int = 1_000
    """Requests at a time in one HTTP/2 connection: one event stream for each session, as in `max_streams`."""
    max_header_bytes: int = 32 * KIB
    """Headers of one request; a browser on localhost sends the cookies of every program that ever ran there."""
    frames: Rate = Rate(burst=2_000, per_s=200.0)
    """Frames without content of one connection that had a credential: pings, settings, window updates beyond those
    that our own frames need, empty frames, tiny fragments. A live client sends a few a second."""
    anonymous_frames: Rate = Rate(burst=200, per_s=20.0)
    """The same for a connection without a credential: they cost no more than accepting the connection."""
    idle_s: float = 60.0
    """A connection without a request is closed after this time, also one whose first headers never end, and one over
    HTTP/2 that only sends control frames."""
    ping_s: float = 10.0
    """How often a silent WebSocket or HTTP/2 connection is pinged."""
    silence_s: float = 22.0
    """A connection that answers nothing for this long is dead: two pings are lost by then."""
    watch_s: float = 2.0
    """How often connections are checked."""
    stop_s: float = 1.5
    """Time for open streams to end when the server stops; then they are cut."""
    linger_s: float = 1.0
    """Time for a peer to read the last bytes of a connection that is closed; then it is cut."""
    linger_bytes: int = 16 * 1024 * KIB
    """Bytes that are read and dropped meanwhile, because a reset would destroy the last bytes that we sent."""
