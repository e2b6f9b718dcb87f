"""How each breach of the agent is exposed: the scenes to play, and the other rules that it breaks."""

from dataclasses import dataclass, field, replace
from typing import Any

from dragoman.check.driver import ScriptTurn

WORK = ScriptTurn("work")
CANCELLED = ScriptTurn("work", cancel="permission")


@dataclass(frozen=True)
class Play:
    """The scenes after the first one, and the options of the check.

    `implied` contains rules that the breach inevitably breaks as well, with the reason.
    """

    scenes: tuple[str, ...] = ("converse",)
    turns: tuple[ScriptTurn, ...] = (WORK,)
    options: dict[str, Any] = field(default_factory=dict)
    implied: dict[str, str] = field(default_factory=dict)


GREETING = Play(scenes=())
CONVERSATION = Play()
CANCEL = Play(turns=(CANCELLED,))
BARE = Play(("converse_without_capabilities",))
LISTS = Play(("lists",))
OPTIONS = Play(("options",))
BAD = Play(("bad_parameters",))
BACK = Play(("reopen_sessions",))
STRANGERS = Play(("unknown_sessions",))

AREAS: dict[str, Play] = {
    "AUTH": GREETING,
    "LIST": LISTS,
    "LOAD": BACK,
    "RESUME": BACK,
    "CLOSE": Play(("close",)),
    "MODE": LISTS,
    "CONFIG": LISTS,
    "CANCEL": CANCEL,
    "MCP": Play(("add_server",)),
}
"""The scenes that expose most rules of an area. The default is the conversation."""

PLAYS: dict[str, Play] = {
    **dict.fromkeys(
        (f"ACP-WIRE-{number:03d}" for number in (1, 2, 3, 4, 6, 8, 10)),
        GREETING,
    ),
    "ACP-WIRE-005": replace(GREETING, options={"timeout_s": 0.5}),
    "ACP-WIRE-009": OPTIONS,
    "ACP-WIRE-011": replace(LISTS, options={"timeout_s": 0.5}),
    "ACP-WIRE-011 no turn ends": Play(
        ("converse", "two_prompts", "close", "reopen_sessions"), options={"turn_timeout_s": 1.5, "timeout_s": 1.0}
    ),
    "ACP-WIRE-012": Play(("strange_lines",)),
    "ACP-WIRE-013": Play(("strange_lines",)),
    "ACP-WIRE-014": Play(("long_line",)),
    "ACP-WIRE-015": BAD,
    "ACP-WIRE-016": BAD,
    "ACP-WIRE-017": Play(("close_input",), options={"exit_timeout_s": 0.5}),
    "ACP-WIRE-017 in the middle of a turn": Play(("converse", "close_in_mid_line"), options={"exit_timeout_s": 0.5}),
    "ACP-WIRE-018": Play(("add_server",)),
    "ACP-WIRE-019": replace(LISTS, implied={"ACP-WIRE-011": "the request that was open at its end got no answer"}),
    "ACP-WIRE-020": LISTS,
    "ACP-WIRE-024": LISTS,
    "ACP-WIRE-025": Play(("cancel_request",), options={"turn_timeout_s": 0.5}),
    **dict.fromkeys(("ACP-INIT-001", "ACP-INIT-002", "ACP-INIT-005"), GREETING),
    "ACP-INIT-003": Play(("unknown_version",)),
    "ACP-INIT-004": BARE,
    "ACP-INIT-006": LISTS,
    "ACP-INIT-008": Play(("unadvertised",)),
    "ACP-INIT-008 loads sessions": Play(("unadvertised",)),
    "ACP-INIT-009": Play(("log_in",)),
    "ACP-INIT-010": GREETING,
    "ACP-INIT-013": GREETING,
    "ACP-AUTH-002": Play(("log_in",)),
    "ACP-AUTH-004": Play(("log_in",), options={"auth": None}),
    "ACP-NEW-001": Play(("two_sessions",)),
    "ACP-NEW-002": LISTS,
    "ACP-NEW-003": LISTS,
    "ACP-NEW-004": BAD,
    "ACP-NEW-007": Play(("cancel",)),
    "ACP-LOAD-003": STRANGERS,
    "ACP-LOAD-005": replace(BACK, turns=(WORK, ScriptTurn("and then rest"))),
    "ACP-RESUME-002": STRANGERS,
    "ACP-CLOSE-002": BACK,
    "ACP-DELETE-001": BACK,
    "ACP-DELETE-002": STRANGERS,
    "ACP-MODE-003": OPTIONS,
    "ACP-MODE-004": CONVERSATION,
    "ACP-MODE-005": CONVERSATION,
    "ACP-CONFIG-002": OPTIONS,
    "ACP-CONFIG-003": OPTIONS,
    "ACP-CONFIG-009": OPTIONS,
    "ACP-PROMPT-002": STRANGERS,
    "ACP-PROMPT-003": Play(("contents",)),
    "ACP-PROMPT-005": Play(("two_prompts",)),
    "ACP-PROMPT-006 cancelled while it was idle": Play(("cancel",)),
    "ACP-PROMPT-008": Play(("contents",)),
    "ACP-PROMPT-009": BARE,
    "ACP-CANCEL-004": replace(CANCEL, options={"turn_timeout_s": 0.5}),
    "ACP-TOOL-006": Play(turns=(ScriptTurn("work", permission="reject"),)),
    "ACP-PERM-004": CANCEL,
    "ACP-FS-001": BARE,
    "ACP-FS-002": BARE,
    "ACP-TERM-001": BARE,
    "ACP-ELICIT-001": BARE,
    "ACP-EXT-003": GREETING,
    "ACP-EXT-004": GREETING,
    "ACP-MCP-002": Play(("add_server",), options={"timeout_s": 0.5}),
    "ACP-MCP-004": Play(("add_http_server",)),
    "ACP-MCP-005": BAD,
}
"""By rule, if the play differs from its area's play."""


def play_of(rule: str) -> Play:
    """Return the play that exposes the breach of a rule."""
    return PLAYS.get(rule) or AREAS.get(rule.split("-")[1], CONVERSATION)
