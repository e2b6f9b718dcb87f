"""The limits of the front: what a request, a connection and the whole server may use, each with its reason."""

import msgspec

from dragoman.bridge.guard.rates import Rate

KIB = 1024


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the application; those of messages and viewers are the bridge's own settings."""

    body_timeout_s: float = 30.0
    """For a request's body to arrive whole: a slow line sends 16 MiB in that time, a stuck client never."""
    max_form_bytes: int = 4 * KIB
    """Longest body of a login or a link: a token, or a code."""
    max_render_bytes: int = 1024 * KIB
    """Longest text to be rendered for the page; longer ones are shown as they are."""
    keep_alive_s: float = 10.0
    """An event stream that has nothing to say sends a comment this often, or proxies cut it after half a minute."""
    reattach_s: float = 20.0
    """How long a connection over HTTP outlives its last stream and request: time enough to come back to it, and with
    `silence_s` and `watch_s` not so long that a dead viewer counts for more than 45 s."""
    max_streams: int = 1_000
    """Event streams of one connection over HTTP: one a session."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the server, for its TCP connections."""

    max_sockets: int = 4_096
    """TCP connections at a time; more would run into the usual limit of open files. When there are so many, the oldest
    that never showed a credential goes first."""
    max_http2_streams: int = 1_000
    """Requests at a time in one HTTP/2 connection: one event stream a session, as in `max_streams`."""
    max_header_bytes: int = 32 * KIB
    """Of one request; a browser on localhost brings the cookies of everything that ever ran there."""
    frames: Rate = Rate(burst=2_000, per_s=200.0)
    """Frames that carry nothing, of one connection that showed a credential: pings, settings, window updates beyond
    those that our own frames call for, empty frames, tiny fragments. A client that is alive sends a few a second."""
    anonymous_frames: Rate = Rate(burst=200, per_s=20.0)
    """The same for a connection that showed none yet: what they cost is no more than what it costs to accept it."""
    idle_s: float = 60.0
    """A connection without a request is closed after this, also one whose first request never ends its headers, and
    one over HTTP/2 that does nothing but send control frames."""
    ping_s: float = 10.0
    """How often a WebSocket or an HTTP/2 connection is asked whether somebody is there."""
    silence_s: float = 22.0
    """One that answers nothing for this long is dead: two pings were lost, or nobody is there."""
    watch_s: float = 2.0
    """How often connections are looked at."""
    stop_s: float = 1.5
    """For open streams to end when the server stops; then they are cut."""
    linger_s: float = 1.0
    """For a peer to take the last words of a connection that is closed; then it is cut."""
    linger_bytes: int = 16 * 1024 * KIB
    """What is read and let go meanwhile, so that the last words are not lost to a reset."""
