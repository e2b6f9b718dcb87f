"""The scenes that are played with an agent; the judge sees the conversations."""

from collections.abc import Awaitable, Callable

from dragoman.check.driver.scenes import connection, servers, sessions, turns
from dragoman.check.driver.stage import Stage

Scene = Callable[[Stage], Awaitable[None]]

FIRST: Scene = connection.greet
"""Played first and alone: without an agent that answers, no other scene makes sense."""

ANY_VERSION: Scene = connection.unknown_version
"""The only scene for an agent that speaks another version than ours."""

CONVERSATION: Scene = turns.converse
"""The scene that others wait for, because it finds a prompt that leads to a permission request."""

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
"""Scenes of a row are played one after the other, with one agent if nothing goes wrong; the longest rows first."""
