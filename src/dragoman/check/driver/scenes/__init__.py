"""What is tried on an agent, scene by scene; the judge says what came of it."""

from collections.abc import Awaitable, Callable

from dragoman.check.driver.scenes import faults, greeting, lines, loads, servers, sessions, turns
from dragoman.check.driver.stage import Stage

Scene = Callable[[Stage], Awaitable[None]]

FIRST: Scene = greeting.greet
"""Played by itself: without an agent that answers, there is nothing more to try."""

CONVERSATION: Scene = turns.converse
"""The one that others wait for, to know what leads to a permission request."""

SCENES: tuple[Scene, ...] = (
    CONVERSATION,
    loads.come_back,
    faults.close_input,
    faults.close_in_mid_line,
    servers.give_server,
    servers.give_http_server,
    lines.strange_lines,
    lines.long_line,
    greeting.unknown_version,
    greeting.misshapen,
    greeting.log_in,
    sessions.bad_parameters,
    sessions.options,
    sessions.unknown_sessions,
    sessions.unadvertised,
    sessions.lists,
    turns.reject,
    turns.cancel,
    turns.cancel_permission,
    turns.cancel_request,
    turns.close,
    turns.two_prompts,
    turns.two_sessions,
    turns.bare_client,
)
"""The longest first, so that none of them is waited for alone."""
