"""What a tap does with findings: a line each on stderr, an object each in a file, and a count for the end."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from dragoman.check.catalogue import RULES
from dragoman.check.conclude import show
from dragoman.check.conversation import Conversation
from dragoman.check.finding import Finding
from dragoman.check.judge.judge import MAX_PER_RULE
from dragoman.check.tap.voice import say

MAX_LIVE = 3
"""Lines that one rule gets on stderr: a fault that comes with every message would bury all others."""


class Findings:
    """Takes findings as they come; `file` is the descriptor that gets them, or -1."""

    def __init__(self, file: int, *, live: bool, clean_all: Callable[[Sequence[bytes]], list[bytes]]) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, Finding] = {}
        self._live = live
        self._clean_all = clean_all
        self._file = file

    def take(self, conversation: Conversation, findings: Iterable[Finding]) -> None:
        """Show and keep what was found in a conversation."""
        for finding in findings:
            self.counts[finding.rule] += 1
            self.first.setdefault(finding.rule, finding)
            count = self.counts[finding.rule]
            if self._live and count <= MAX_LIVE:
                say(_line(finding, last=count == MAX_LIVE))
            if self._file >= 0:
                self._keep(conversation, finding)

    def summary(self) -> list[str]:
        """Say what was found, a line a rule, failures first."""
        ordered = sorted(self.first.values(), key=lambda each: (each.verdict != "fail", each.rule))
        return [_summed(each, self.counts[each.rule]) for each in ordered]

    def close(self) -> None:
        """End the file."""
        if self._file >= 0:
            os.close(self._file)

    def _keep(self, conversation: Conversation, finding: Finding) -> None:
        line = msgspec.json.encode(self._object(conversation, finding)) + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            os.close(self._file)
            self._file = -1
            say(f"cannot write the findings: {error.strerror}; those that follow are only in the summary")

    def _object(self, conversation: Conversation, finding: Finding) -> dict[str, Any]:
        rule = RULES[finding.rule]
        proof = list(show(conversation, finding))
        cleaned = self._clean_all([each.line.encode() for each in proof])
        evidence = [
            msgspec.structs.replace(each, line=line.decode()) for each, line in zip(proof, cleaned, strict=True)
        ]
        return {
            "id": rule.id,
            "title": rule.title,
            "level": rule.level,
            "verdict": finding.verdict,
            "clause": rule.clause,
            "detail": finding.detail,
            "fix": rule.fix,
            "evidence": evidence,
        }


def _line(finding: Finding, *, last: bool) -> str:
    rule = RULES[finding.rule]
    more = " (more of these come only in the summary)" if last else ""
    return f"{finding.verdict} {rule.id} {_short(finding.detail)}; {rule.fix}{more}"


def _summed(finding: Finding, count: int) -> str:
    times = f" ({count} times{' or more' if count >= MAX_PER_RULE else ''})" if count > 1 else ""
    return f"{finding.verdict} {finding.rule}{times}: {RULES[finding.rule].title}: {_short(finding.detail)}"


def _short(text: str) -> str:
    """Keep a text of unknown origin to one line that a terminal only prints."""
    one_line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return one_line if len(one_line) <= 300 else f"{one_line[:299]}…"
