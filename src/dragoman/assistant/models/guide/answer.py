"""What happened, in words: summaries of results, reasons of failures, and what to try next."""

import re
from collections.abc import Callable
from typing import Any

from dragoman.assistant.models.guide.choice import UseTool
from dragoman.assistant.models.guide.talk import shown_name
from dragoman.assistant.models.message import ToolResult, ToolUse
from dragoman.text.excerpt import shorten

MAX_LINES = 12
"""Lines of a result that are shown: the client has the whole of it with the tool call."""

MAX_WIDTH = 200

_DECLINED = re.compile(
    r"\b(?:declined|person has rejected|"
    r"rejected by the user|user (?:has )?(?:rejected|denied|refused)|denied by the user|not approved|"
    r"(?:permission|approval) (?:was )?(?:rejected|refused|not given|not granted)|was denied)\b",
    re.IGNORECASE,
)
_EXIT = re.compile(r"\bexit(?:ed)?(?: with)?(?: the)?(?: status| code)?[: =]+(-?\d{1,5})\b", re.IGNORECASE)
_SIGNAL = re.compile(r"\b(?:killed|ended|stopped) by (?:signal )?(SIG[A-Z]+|\d+)\b", re.IGNORECASE)
_LATE = re.compile(r"\bdid not end in time\b", re.IGNORECASE)
_ENDED = re.compile(f"{_EXIT.pattern}|{_SIGNAL.pattern}|{_LATE.pattern}", re.IGNORECASE)
_NOTE = re.compile(r"\[[^\[\]]{3,300}\]\Z")
_NEXT = (
    (r"\Athe client refused\b", "That is your editor's answer: see what it allows."),
    (r"no such file|not found|does not exist|no file", "Check the name: `list .` shows what is there."),
    (r"is a directory", "It is a directory: `list` shows what is in it."),
    (r"not a directory", "It is a file: `read` shows it."),
    (r"match|occurs|more than once|ambiguous", "Quote a piece of text that is in the file exactly once."),
    (r"outside|boundary", "I can work only inside the session's directories."),
    (r"plan mode|read-only|mode", "Switch the session's mode if you want changes."),
    (r"permission denied", "The system does not let this user do it."),
    (r"time(?:d)? ?out", "Try it again, or with less to do."),
    (r"no tool named", "Say `help` to see the tools that are here."),
)


def was_declined(result: ToolResult) -> bool:
    """Tell whether a person said no."""
    return result.failed and _DECLINED.search(result.text[:2000]) is not None


def has_failed(kind: str | None, result: ToolResult | None) -> bool:
    """Tell whether a tool did not do what was asked: a command may run and still fail."""
    if result is None or result.failed:
        return True
    status = _EXIT.search(result.text) if kind == "run" else None
    return status is not None and status[1] != "0"


def describe(use: ToolUse, result: ToolResult, kind: str | None) -> str:
    """Say what came of a tool."""
    if was_declined(result):
        changes = kind not in ("read", "list", "search")
        return "That was not allowed; nothing was changed." if changes else "That was not allowed, so I did not look."
    if result.failed and not (kind == "run" and _ENDED.search(result.text)):
        return _failure(use, result)
    tell = _TOLD.get(kind or "", _foreign)
    return tell(use, result)


def intention(call: UseTool) -> str:
    """Say what a call is, as a thought."""
    values = ", ".join(f"{name} = {_short(value)}" for name, value in call.arguments.items())
    return f"I understand this as `{shown_name(call.tool)}`{f' with {values}' if values else ''}."


def closing(done: int, failed: int, declined: int) -> str:
    """End a turn."""
    total = done + failed + declined
    if total == 1:
        return "Done." if done else "That is all that I tried."
    if done == total:
        return f"All {total} steps are done."
    rest = [f"{failed} failed"] * bool(failed) + [f"{declined} declined"] * bool(declined)
    return f"{done} of {total} steps done, {', '.join(rest)}."


def _short(value: Any) -> str:
    return shorten(" ".join(str(value).split()), 60)


def _target(use: ToolUse) -> str:
    for name in ("path", "file_path", "file", "filename", "directory"):
        if isinstance(use.arguments.get(name), str):
            return use.arguments[name]
    return use.name


def _failure(use: ToolUse, result: ToolResult) -> str:
    reason = _short_reason(result.text)
    advice = next(
        (advice for sign, advice in _NEXT if re.search(sign, reason, re.IGNORECASE)),
        "Change the request and try again, or say `help`.",
    )
    return f"`{use.name}` did not work: {reason} {advice}"


def _short_reason(text: str) -> str:
    reason = shorten(" ".join(text.split()) or "it gave no reason.", 300)
    return reason if reason.endswith((".", "!", "?", "…")) else f"{reason}."


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n") if text.strip() else []


def _without_notes(text: str) -> tuple[list[str], str]:
    """Part what a tool found from what it remarks about that, in brackets, at the end."""
    lines, notes = _lines(text), list[str]()
    while lines and _NOTE.match(lines[-1]):
        notes.insert(0, lines.pop()[1:-1])
    return lines, f"\n\n({'; '.join(notes)})" if notes else ""


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"1 {noun}" if number == 1 else f"{number} {plural}"


def _fenced(lines: list[str]) -> str:
    shown = "\n".join(line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}…" for line in lines)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"


def _read(use: ToolUse, result: ToolResult) -> str:
    path = _target(use)
    lines, note = _without_notes(result.text)
    if not lines:
        return f"`{path}` is empty."
    begins = ":" if len(lines) <= MAX_LINES else "; it begins:"
    return f"`{path}`, {_count(len(lines), 'line')}{begins}\n\n{_fenced(lines[:MAX_LINES])}{note}"


def _listed(use: ToolUse, result: ToolResult) -> str:
    path = _target(use)
    lines, note = _without_notes(result.text)
    if not lines:
        return f"`{path}` is empty."
    return f"`{path}` has {_count(len(lines), 'entry')}:\n\n{_fenced(lines[: 2 * MAX_LINES])}{_more(lines, 2)}{note}"


def _more(lines: list[str], times: int = 1) -> str:
    left = len(lines) - times * MAX_LINES
    return f"\n\nand {left} more." if left > 0 else ""


_NOTHING = re.compile(r"\s*(?:no (?:matches|results|files)|nothing (?:was )?found|0 matches)\b", re.IGNORECASE)


def _searched(use: ToolUse, result: ToolResult) -> str:
    pattern = _short(use.arguments.get("pattern") or use.arguments.get("query") or "")
    found, note = _without_notes(result.text)
    lines = [line for line in found if line.strip() and not line.endswith("that match:")]
    if not lines or _NOTHING.match(result.text):
        return f"Nothing found for `{pattern}`."
    return f"{_count(len(lines), 'match')} for `{pattern}`:\n\n{_fenced(lines[:MAX_LINES])}{_more(lines)}{note}"


def _ran(use: ToolUse, result: ToolResult) -> str:
    command = _short(use.arguments.get("command", use.name))
    status, signal = _EXIT.search(result.text), _SIGNAL.search(result.text)
    if _LATE.search(result.text[-200:]):
        how = "did not end in time and was stopped"
    elif signal is not None:
        how = f"was ended by {signal[1]}"
    elif status is not None and status[1] != "0":
        how = f"failed with exit status {status[1]}"
    else:
        how = "failed" if result.failed else "succeeded (exit status 0)" if status is not None else "ran"
    lines = [line for line in _lines(result.text) if not _is_status(line)]
    if not lines:
        return f"`{command}` {how}, with no output."
    end = "" if len(lines) <= MAX_LINES else f"; the last {MAX_LINES} of {_count(len(lines), 'line')}"
    return f"`{command}` {how}{end}:\n\n{_fenced(lines[-MAX_LINES:])}"


_STATUS = re.compile(
    r"\[no output\]\Z|\[it did not end in time|\[killed by \w+\]\Z|\W*(?:the )?(?:command|process)?\W*exit",
    re.IGNORECASE,
)


def _is_status(line: str) -> bool:
    if len(line) > 60 or _STATUS.match(line) is None:
        return False
    return line.startswith("[") or _EXIT.search(line) is not None


def _foreign(use: ToolUse, result: ToolResult) -> str:
    lines = _lines(result.text)
    if not lines:
        return f"`{use.name}` is done; it returned nothing."
    if len(lines) == 1 and len(lines[0]) <= MAX_WIDTH:
        return f"`{use.name}` says: {lines[0].strip()}"
    more = f"\n\nand {len(lines) - MAX_LINES} more lines." if len(lines) > MAX_LINES else ""
    return f"`{use.name}` says:\n\n{_fenced(lines[:MAX_LINES])}{more}"


_TOLD: dict[str, Callable[[ToolUse, ToolResult], str]] = {
    "read": _read,
    "list": _listed,
    "search": _searched,
    "write": lambda use, _: f"Wrote `{_target(use)}`.",
    "edit": lambda use, _: f"Changed `{_target(use)}`.",
    "run": _ran,
    "plan": lambda use, _: f"The plan is set: {len(use.arguments.get('entries', ()))} entries.",
}
