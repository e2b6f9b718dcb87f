"""The scenes that are played with an agent. The judge observes the conversations."""

from collections.abc import Awaitable, Callable

from dragoman.check.driver.scenes import connection, http, servers, sessions, turns, version_2, websocket, work
from dragoman.check.driver.stage import Stage
from dragoman.check.rule import Version

Scene = Callable[[Stage], Awaitable[None]]

FIRST: Scene = connection.initialize
"""Played first, with no other scene. If the agent does not answer, no other scene makes sense."""

ANY_VERSION: Scene = connection.unknown_version
"""The only scene for an agent that speaks another version than we do."""

CONVERSATIONS: tuple[Scene, ...] = (turns.converse, work.converse)
"""The scenes that others wait for, because they find a prompt that leads to a permission request."""

Rows = tuple[tuple[Scene, ...], ...]

_OF_VERSION_1: Rows = (
    (turns.converse, turns.cancel_request, turns.two_prompts),
    (sessions.reopen_sessions,),
    (servers.add_server,),
    (
        sessions.bad_parameters,
        sessions.options,
        sessions.unknown_sessions,
        sessions.unadvertised,
        sessions.lists,
        turns.contents,
        servers.add_http_server,
        connection.close_input,
    ),
    (turns.reject, turns.close),
    (turns.cancel, turns.two_sessions, turns.cancel_permission),
    (turns.converse_without_capabilities,),
    (connection.strange_lines, connection.long_line, connection.close_in_mid_line),
    (connection.unknown_version,),
    (connection.bad_initialize,),
    (connection.log_in,),
)
_OF_VERSION_2: Rows = (
    (work.converse, work.cancel_parts, work.two_prompts, work.queue_prompt),
    (version_2.reopen_sessions,),
    (servers.add_server,),
    (
        version_2.bad_parameters,
        version_2.options,
        version_2.unknown_sessions,
        sessions.unadvertised,
        sessions.lists,
        work.contents,
        servers.add_http_server,
        connection.close_input,
    ),
    (work.reject, work.send_unknown_answers, work.close),
    (work.cancel, work.two_sessions, work.cancel_permission),
    (connection.strange_lines, connection.long_line, connection.close_in_mid_line),
    (connection.unknown_version,),
    (version_2.no_version,),
    (connection.bad_initialize,),
    (connection.log_in,),
)
WITHOUT_SESSIONS: frozenset[Scene] = frozenset(
    (
        connection.strange_lines,
        connection.unknown_version,
        connection.bad_initialize,
        version_2.no_version,
        http.refusals,
        http.resume_stream,
        websocket.frames,
    )
)
"""Scenes that need no message on a session's stream."""

SCENES: dict[Version, Rows] = {1: _OF_VERSION_1, 2: _OF_VERSION_2}
"""The scenes of a row run one after another, with the same agent if nothing goes wrong. The longest rows are first."""

REMOTE: Rows = ((http.exchange,), (http.refusals, http.resume_stream, websocket.frames))
"""Scenes for an agent at a URL, in each version. They judge its server."""
