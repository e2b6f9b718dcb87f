"""What is tried on an agent, scene by scene; the judge says what came of it."""

from collections.abc import Awaitable, Callable

from dragoman.check.driver.scenes import connection, servers, sessions, turns
from dragoman.check.driver.stage import Stage

Scene = Callable[[Stage], Awaitable[None]]

FIRST: Scene = connection.greet
"""Played by itself: without an agent that answers, there is nothing more to try."""

ANY_VERSION: Scene = connection.unknown_version
"""All that there is to try on an agent that speaks another version than ours."""

CONVERSATION: Scene = turns.converse
"""The one that others wait for, to know what leads to a permission request."""

SCENES: tuple[tuple[Scene, ...], ...] = (
    (CONVERSATION, turns.cancel_request, turns.two_prompts),
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
"""Those of a row are played one after the other, with one agent where nothing goes wrong; the longest rows first."""
