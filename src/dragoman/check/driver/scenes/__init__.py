"""The scenes that are played with an agent; the judge sees the conversations."""

from collections.abc import Awaitable, Callable

from dragoman.check.driver.scenes import connection, http, servers, sessions, turns, version_2, websocket, work
from dragoman.check.driver.stage import Stage
from dragoman.check.rule import Version

Scene = Callable[[Stage], Awaitable[None]]

FIRST: Scene = connection.greet
"""Played first and alone: without an agent that answers, no other scene makes sense."""

ANY_VERSION: Scene = connection.unknown_version
"""The only scene for an agent that speaks another version than ours."""

CONVERSATIONS: tuple[Scene, ...] = (turns.converse, work.converse)
"""The scenes that others wait for, because they find a prompt that leads to a permission request."""

Rows = tuple[tuple[Scene, ...], ...]

_OF_VERSION_1: Rows = (
    (turns.converse, turns.cancel_request, turns.two_prompts),
    (sessions.come_back,),
    (servers.give_server,),
    (
        sessions.bad_parameters,
        sessions.options,
        sessions.unknown_sessions,
        sessions.unadvertised,
        sessions.lists,
        turns.contents,
        servers.give_http_server,
        connection.close_input,
    ),
    (turns.reject, turns.close),
    (turns.cancel, turns.two_sessions, turns.cancel_permission),
    (turns.bare_client,),
    (connection.strange_lines, connection.long_line, connection.close_in_mid_line),
    (connection.unknown_version,),
    (connection.bad_hello,),
    (connection.log_in,),
)
_OF_VERSION_2: Rows = (
    (work.converse, work.cancel_parts, work.two_prompts),
    (version_2.come_back,),
    (servers.give_server,),
    (
        version_2.bad_parameters,
        version_2.options,
        version_2.unknown_sessions,
        sessions.unadvertised,
        sessions.lists,
        work.contents,
        servers.give_http_server,
        connection.close_input,
    ),
    (work.reject, work.answer_oddly, work.close),
    (work.cancel, work.cancel_permission),
    (connection.strange_lines, connection.long_line, connection.close_in_mid_line),
    (connection.unknown_version,),
    (version_2.no_version,),
    (connection.bad_hello,),
    (connection.log_in,),
)
SCENES: dict[Version, Rows] = {1: _OF_VERSION_1, 2: _OF_VERSION_2}
"""Scenes of a row are played one after the other, with one agent if nothing goes wrong; the longest rows first."""

REMOTE: Rows = ((http.exchange,), (http.refusals, http.go_on, websocket.frames))
"""Scenes for an agent at a URL, in each version: they judge its server."""
