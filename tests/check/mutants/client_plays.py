"""How each breach of the client is exposed: the adversary's part, and the other rules that it breaks."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Play:
    """A part of the adversary, and the options of the check.

    `implied` contains rules that the breach inevitably breaks as well, with the reason.
    """

    part: str = "surprises"
    options: dict[str, Any] = field(default_factory=dict)
    implied: dict[str, str] = field(default_factory=dict)


SURPRISES = Play()
OFFERS = Play("offers")
ALL = Play("offers-all")
STRANGE = Play("strange-lines")

AREAS: dict[str, Play] = {"FS": OFFERS, "TERM": OFFERS, "ELICIT": OFFERS, "MODE": ALL, "CONFIG": ALL}
"""The parts that expose most rules of an area. The default is the surprises."""

PLAYS: dict[str, Play] = {
    "ACP-WIRE-105": Play(options={"answer_timeout_s": 0.3}),
    "ACP-WIRE-107": ALL,
    "ACP-WIRE-111": Play(options={"answer_timeout_s": 0.3}),
    "ACP-WIRE-111 permission unanswered": Play(options={"answer_timeout_s": 0.3}),
    "ACP-WIRE-111 unknown request unanswered": Play("strange-lines", options={"answer_timeout_s": 0.3}),
    "ACP-WIRE-111 wait_for_exit of a killed command": Play("offers", options={"answer_timeout_s": 0.3}),
    "ACP-WIRE-112": STRANGE,
    "ACP-WIRE-113": Play("dies", options={"timeout_s": 10.0}),
    "ACP-WIRE-114": STRANGE,
    "ACP-WIRE-114 passed over": Play("strange-lines", options={"answer_timeout_s": 0.3}),
    "ACP-WIRE-115": STRANGE,
    "ACP-WIRE-122": ALL,
    "ACP-WIRE-123": ALL,
    "ACP-WIRE-125": Play("takes-back"),
    "ACP-INIT-103": Play("unknown-version"),
    "ACP-INIT-106": OFFERS,
    "ACP-AUTH-101": ALL,
    "ACP-NEW-103": ALL,
    "ACP-LIST-102": ALL,
    "ACP-LIST-103": ALL,
    "ACP-PROMPT-103": ALL,
    "ACP-CANCEL-101": Play("is-cancelled"),
    "ACP-CONTENT-102": ALL,
}
"""By rule, if the play differs from its area's play."""


def play_of(rule: str) -> Play:
    """Return the play that exposes the breach of a rule."""
    return PLAYS.get(rule) or AREAS.get(rule.split("-")[1], SURPRISES)
