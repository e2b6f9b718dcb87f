"""A report with the name of its subject. Text from the subject is made safe to show, because it may be anything."""

import json
from typing import Any, cast

import msgspec

from dragoman.check.results import CheckReport, Evidence, Result, Verdict, VerdictCounts, count_verdicts
from dragoman.check.rule import Level
from dragoman.text import escape_json, one_line, visible
from dragoman.wire.message import BAD_JSON

ORDER: tuple[Verdict, ...] = ("error", "fail", "warn", "not_exercised", "pass")
"""The verdicts, the most severe first."""

LEVELS: tuple[Level, ...] = ("must", "should", "disputed")

WORDS: dict[Verdict, str] = {
    "error": "error",
    "fail": "fail",
    "warn": "warn",
    "not_exercised": "not exercised",
    "pass": "pass",
}


class NamedReport(msgspec.Struct, frozen=True):
    """A report, the name of the agent or client, and its known failures."""

    name: str
    report: CheckReport
    known: frozenset[str] = frozenset()

    @property
    def ordered(self) -> list[Result]:
        """The results, the most severe first, and known failures after new ones."""
        return sorted(
            self.report.results,
            key=lambda each: (ORDER.index(each.verdict), each.key in self.known, LEVELS.index(each.level)),
        )

    def is_known(self, result: Result) -> bool:
        """Return whether a failure is a known one."""
        return result.verdict == "fail" and result.key in self.known

    @property
    def counts(self) -> str:
        """The summary as text, without zeros. With several protocol versions, one summary per version."""
        versions = self.report.protocols
        if len(versions) < 2:
            return _count(self.report.summary)
        parts = ([each for each in self.report.results if each.protocol == version] for version in versions)
        return "; ".join(
            f"version {version}: {_count(count_verdicts(part))}" for version, part in zip(versions, parts, strict=True)
        )


def _count(summary: VerdictCounts) -> str:
    numbers = (
        (summary.error, "errors of the checker"),
        (summary.fail, "failed"),
        (summary.warn, "warnings"),
        (summary.passed, "passed"),
        (summary.not_exercised, "not exercised"),
    )
    return ", ".join(f"{number} {word}" for number, word in numbers if number) or "nothing was judged"


def as_json(content: object) -> str:
    """Return the text of a JSON file. A lone surrogate, which UTF-8 cannot encode, is replaced."""
    text = json.dumps(msgspec.to_builtins(content), ensure_ascii=False, indent=2)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return escape_json(whole) + "\n"


def name_entry(evidence: Evidence) -> str:
    """Return a short name of an entry: its method, or a result or error."""
    if evidence.event:
        return one_line(evidence.event)
    message = _read(evidence.line)
    if message is None:
        return f"no message: {one_line(evidence.line, 40)}"
    method, request = message.get("method"), message.get("id")
    about = "" if request is None else f" (id {one_line(msgspec.json.encode(request).decode(), 24)})"
    if isinstance(method, str):
        return one_line(method, 40) + _update(message) + about
    error = message.get("error")
    if isinstance(error, dict):
        return f"error {one_line(str(cast('dict[str, Any]', error).get('code')), 12)}{about}"
    return f"result{about}"


def pretty(evidence: Evidence) -> str:
    """Return the message of an entry on several lines. A line that is not JSON is unchanged."""
    try:
        return visible(msgspec.json.format(evidence.line, indent=2), lines=True)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return visible(evidence.line, lines=True)


def _update(message: dict[str, Any]) -> str:
    params = message.get("params")
    update = cast("dict[str, Any]", params).get("update") if isinstance(params, dict) else None
    kind = cast("dict[str, Any]", update).get("sessionUpdate") if isinstance(update, dict) else None
    return f": {one_line(kind, 32)}" if isinstance(kind, str) else ""


def _read(line: str) -> dict[str, Any] | None:
    try:
        read = msgspec.json.decode(line)
    except (*BAD_JSON, UnicodeEncodeError):
        return None
    return cast("dict[str, Any]", read) if isinstance(read, dict) else None
