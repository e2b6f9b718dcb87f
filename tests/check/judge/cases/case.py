"""One rule with a conversation that breaks it and one that follows it."""

from typing import NamedTuple

from tests.check.judge.talking import Talk


class Case(NamedTuple):
    rule: str
    broken: Talk
    kept: Talk
    verdict: str = "fail"
