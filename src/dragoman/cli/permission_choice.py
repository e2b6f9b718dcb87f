"""The ways to answer a permission request in a terminal, and the keys for them, the same in `chat` and `run`.

`y` is the option that allows once, and `n` the one that rejects once: a plain yes or no never binds for longer.
"""

from typing import Literal, NamedTuple

from dragoman.client import Decision, Question
from dragoman.protocol import v1
from dragoman.protocol.permission_options import find_default, read_scopes
from dragoman.text import one_line

MAX_NUMBER = 9
"""The last number that is one key."""

_KEYS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "d"}


class Choice(NamedTuple):
    """One way to answer, and the keys for it."""

    keys: str
    name: str
    decision: Decision


def find_choices(question: Question) -> list[Choice]:
    """Return the ways to answer: those that the agent offers, numbered, or plain yes and no."""
    choices: list[Choice] = []
    for option in question.options:
        for name, decision in _ways(option):
            letter, number = _KEYS[option.kind], len(choices) + 1
            taken = any(letter in choice.keys for choice in choices)
            keys = ("" if taken else letter) + (str(number) if number <= MAX_NUMBER else "")
            choices.append(Choice(keys, one_line(name), decision))
    if not question.options:
        choices.append(Choice("y1", "Allow", Decision("allow")))
    if not any(choice.decision.verdict == "deny" for choice in choices):
        choices.append(Choice(f"n{len(choices) + 1}", "No", Decision("deny")))
    return choices


def find_refusal(question: Question, choices: list[Choice]) -> Choice:
    """Return the choice that a plain no means: Escape, or the end of the input."""
    position = find_default([option.kind for option in question.options], "reject")
    option_id = None if position is None else question.options[position].option_id
    denying = [choice for choice in choices if choice.decision.verdict == "deny"]
    return next((choice for choice in denying if choice.decision.option_id == option_id), denying[0])


def _ways(option: v1.PermissionOption) -> list[tuple[str, Decision]]:
    """Return one way for each scope that the option offers; none for a kind that the protocol does not have."""
    if option.kind not in _KEYS:
        return []
    verdict: Literal["allow", "deny"] = "allow" if option.kind.startswith("allow") else "deny"
    scopes = read_scopes(option)
    if not scopes:
        return [(option.name, Decision(verdict, option.option_id))]
    return [(each.name, Decision(verdict, option.option_id, remember=each.scope)) for each in scopes]
