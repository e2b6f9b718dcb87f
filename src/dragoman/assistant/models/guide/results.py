"""Describes the results of tool calls to the user."""

import re
from collections.abc import Mapping
from typing import Any

from dragoman.assistant.models.message import ToolResult
from dragoman.text.excerpt import shorten

MAX_LINES = 12
"""Lines of a file that are shown. The client has the whole result with the tool call."""
MAX_NAMES = 24
MAX_WIDTH = 200

_DECLINED = re.compile(r"\b(?:declined|rejected|denied by|was denied|not approved)\b", re.IGNORECASE)
_ENDED = re.compile(
    r"\[(?:exit code (?P<status>-?\d+)[^\]]*|killed by "
    r"(?P<signal>\w+)|it did not finish in time[^\]]*)\]"
)
_NOTE = re.compile(
    r"\[(?:no output|exit code|killed by|it did not finish|output was cut|cut after|lines? \d"
    r"|the (?:file|directory) is empty|nothing matches|more than|not all|[\d,]+ more left out)[^\n]*\]"
)
"""Remarks of the built-in tools, each on its own line after the output."""
_ADVICE = (
    (r"\Athe client refused\b", "This is your editor's answer. Check what it allows."),
    (r"no such file|not found|not exist", "Check the name: `list` shows what is there."),
    (r"old is not in the file", "Check the text: `read` shows the file."),
    (r"matches \d+ times|more than once", "Quote a longer piece of text that is in the file exactly once."),
    (r"outside|boundary", "I can only work inside the session's directories."),
    (r"\bmode\b", "Switch the session's mode to allow changes."),
)


def output_lines(text: str) -> list[str]:
    """Return the lines of a result without the remarks at its end."""
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    while lines and _NOTE.fullmatch(lines[-1]):
        lines.pop()
    return lines


def describe(tool: str, arguments: Mapping[str, Any], result: ToolResult, title: str) -> str:
    """Return a sentence about the result of a tool call."""
    # A refusal needs no details. A failed command is described like a successful one, because its output matters.
    if result.failed and _DECLINED.search(result.text[:2000]):
        return "It was not allowed, so nothing was done."
    if result.failed and not (tool == "run_command" and _ENDED.search(result.text)):
        return _describe_failure(title, result.text)
    match tool:
        case "read_file":
            text = describe_text(str(arguments["path"]), result.text)
        case "list_directory":
            place = "The working directory" if arguments["path"] == "." else f"`{arguments['path']}`"
            text = _describe_lines(f"{place} has", "entry", "entries", result.text)
        case "search_files":
            text = _describe_lines("Found", "match", "matches", result.text)
        case "run_command":
            text = _describe_command(one_line(str(arguments["command"]), 80), result.text)
        case "write_file" | "edit_file":
            text = f"{'Wrote' if tool == 'write_file' else 'Changed'} `{arguments['path']}`."
        case _:
            text = _describe_answer(title, result.text)
    return text


def describe_text(path: str, text: str) -> str:
    """Show the beginning of a file."""
    lines = output_lines(text)
    if not lines:
        return f"`{path}` is empty."
    begins = "" if len(lines) <= MAX_LINES else f" The first {MAX_LINES}:"
    return f"`{path}` has {_count(len(lines), 'line', 'lines')}.{begins}\n\n{_fence(lines[:MAX_LINES])}{_notes(text)}"


def one_line(text: str, length: int) -> str:
    """Return the beginning of a text on one line."""
    return shorten(" ".join(text.split()), length)


def _describe_failure(title: str, text: str) -> str:
    reason = one_line(text, 300).rstrip(".") or "it gave no reason"
    advice = next((advice for sign, advice in _ADVICE if re.search(sign, reason, re.IGNORECASE)), "")
    return f"`{title}` failed: {reason}. {advice}".rstrip()


def _describe_lines(subject: str, one: str, many: str, text: str) -> str:
    lines = [line for line in output_lines(text) if line.strip()]
    if not lines:
        return f"{subject} no {many}."
    count = _count(len(lines), one, many)
    more = f"\n\nand {len(lines) - MAX_NAMES:,} more." if len(lines) > MAX_NAMES else ""
    return f"{subject} {count}:\n\n{_fence(lines[:MAX_NAMES])}{more}{_notes(text)}"


def _describe_command(command: str, text: str) -> str:
    end = next(iter(reversed(list(_ENDED.finditer(text)))), None)
    if end is None:
        how = "ran"
    elif end["signal"]:
        how = f"was ended by {end['signal']}"
    elif end["status"] is None:
        how = "did not finish in time and was stopped"
    else:
        how = "succeeded" if end["status"] == "0" else f"failed with exit status {end['status']}"
    lines = output_lines(text)
    if not lines:
        return f"`{command}` {how} and printed nothing."
    cut = f" The last {MAX_NAMES} of {len(lines):,} lines:" if len(lines) > MAX_NAMES else ""
    return f"`{command}` {how}.{cut}\n\n{_fence(lines[-MAX_NAMES:])}"


def _describe_answer(title: str, text: str) -> str:
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    if not lines:
        return f"`{title}` returned nothing."
    if len(lines) == 1 and len(lines[0]) <= MAX_WIDTH:
        return f"`{title}` returned: {lines[0].strip()}"
    more = f"\n\nand {len(lines) - MAX_NAMES:,} more lines." if len(lines) > MAX_NAMES else ""
    return f"`{title}` returned:\n\n{_fence(lines[:MAX_NAMES])}{more}"


def _notes(text: str) -> str:
    notes = text.rstrip("\n").split("\n")[len(output_lines(text)) :]
    return f"\n\n({'; '.join(note[1:-1] for note in notes)})" if any(notes) else ""


def _count(number: int, one: str, many: str) -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {many}"


def _fence(lines: list[str]) -> str:
    shown = "\n".join(line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}…" for line in lines)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"
