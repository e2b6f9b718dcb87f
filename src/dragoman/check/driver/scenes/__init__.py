"""What is tried on an agent, scene by scene; the judge says what came of it."""

from collections.abc import Awaitable, Callable

from dragoman.check.driver.scenes import contents, faults, greeting, lines, loads, servers, sessions, turns
from dragoman.check.driver.stage import Stage

Scene = Callable[[Stage], Awaitable[None]]

FIRST: Scene = greeting.greet
"""Played by itself: without an agent that answers, there is nothing more to try."""

ANY_VERSION: Scene = greeting.unknown_version
"""All that there is to try on an agent that speaks another version than ours."""

CONVERSATION: Scene = turns.converse
"""The one that others wait for, to know what leads to a permission request."""

SCENES: tuple[tuple[Scene, ...], ...] = (
    (CONVERSATION, turns.cancel_request, turns.two_prompts),
    (loads.come_back,),
    (servers.give_server,),
    (
        sessions.bad_parameters,
        sessions.options,
        sessions.unknown_sessions,
        sessions.unadvertised,
        sessions.lists,
        contents.contents,
        servers.give_http_server,
        faults.close_input,
    ),
    (turns.reject, turns.close),
    (turns.cancel, turns.two_sessions, turns.cancel_permission),
    (turns.bare_client,),
    (lines.strange_lines, lines.long_line, faults.close_in_mid_line),
    (greeting.unknown_version,),
    (greeting.misshapen,),
    (greeting.log_in,),
)
"""Those of a row are played one after the other, with one agent where nothing goes wrong; the longest rows first."""
