"""Results in words: what came of a call, why it failed, and what to try next."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.assistant.models.message import ToolResult
from dragoman.text.excerpt import shorten

MAX_LINES = 12
"""Lines of a result that are shown: the client has the whole of it with the tool call."""
MAX_NAMES = 24
MAX_WIDTH = 200

_DECLINED = re.compile(
    r"\b(?:declined|rejected|(?:user|person) (?:has )?(?:denied|refused)|denied by|not approved|was denied)\b",
    re.IGNORECASE,
)
_EXIT = re.compile(r"\[exit code (-?\d+)\]\s*\Z")
_ENDED = re.compile(r"\[(?:exit code [^\]]+|killed by (?P<signal>\w+)|it did not end in time[^\]]*|no output)\]")
_NOTE = re.compile(
    r"\[(?:no output|exit code|killed by|it did not end|output was cut|cut after|lines? \d"
    r"|the (?:file|directory) is empty|nothing matches|more than|not all|[\d,]+ more left out)[^\n]*\]"
)
"""The remarks of the built-in tools, each on a line of its own behind what they found."""
_NEXT = (
    (r"\Athe client refused\b", "That is your editor's answer: see what it allows."),
    (r"no such file|not found|not exist", "Check the name: `list .` shows what is there."),
    (r"not a directory", "It is a file: `read` shows it."),
    (r"is a directory", "It is a directory: `list` shows what is in it."),
    (r"matches nowhere", "Check the text: `read` shows the file."),
    (r"matches \d+ times|more than once", "Quote a piece of text that is in the file exactly once."),
    (r"outside|boundary", "I can work only inside the session's directories."),
    (r"\bmode\b", "Switch the session's mode if you want changes."),
    (r"permission denied", "The system does not let this user do it."),
    (r"timed? ?out", "Try it again, or with less to do."),
)
_LOOKS = ("read_file", "list_directory", "search_files")


def was_declined(result: ToolResult) -> bool:
    """Tell whether a person said no."""
    return result.failed and _DECLINED.search(result.text[:2000]) is not None


def has_failed(tool: str, result: ToolResult) -> bool:
    """Tell whether a tool did not do what was asked; a command may run and still fail."""
    status = _EXIT.search(result.text) if tool == "run_command" else None
    return result.failed or (status is not None and status[1] != "0")


def output_lines(text: str) -> list[str]:
    """Return the lines of a result without the remarks in brackets at its end."""
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    while lines and _NOTE.fullmatch(lines[-1]):
        lines.pop()
    return lines


def describe(tool: str, arguments: Mapping[str, Any], result: ToolResult, title: str) -> str:
    """Say what came of a call."""
    if was_declined(result):
        return f"That was not allowed, so {'I did not look' if tool in _LOOKS else 'nothing was changed'}."
    if result.failed and not (tool == "run_command" and _ENDED.search(result.text)):
        return _describe_failure(title, result)
    tell = _TOLD.get(tool)
    return tell(arguments, result) if tell else _describe_answer(title, result)


def one_line(text: str, length: int) -> str:
    """Return the beginning of a text on one line."""
    return shorten(" ".join(text.split()), length)


def _describe_failure(title: str, result: ToolResult) -> str:
    reason = one_line(result.text, 300) or "it gave no reason"
    advice = next((advice for sign, advice in _NEXT if re.search(sign, reason, re.IGNORECASE)), "Say `help` for help.")
    return f"`{title}` did not work: {reason.rstrip('.')}. {advice}"


def _describe_text(arguments: Mapping[str, Any], result: ToolResult) -> str:
    name = f"`{arguments['path']}`"
    lines = output_lines(result.text)
    if not lines:
        return f"{name} is empty."
    begins = "" if len(lines) <= MAX_LINES else "; it begins"
    return f"{name}, {_count(len(lines), 'line')}{begins}:\n\n{_fence(lines[:MAX_LINES])}{_notes(result)}"


def _describe_listing(arguments: Mapping[str, Any], result: ToolResult) -> str:
    name = f"`{arguments['path']}`"
    lines = output_lines(result.text)
    if not lines:
        return f"{name} is empty."
    count = _count(len(lines), "entry", "entries")
    return f"{name} has {count}:\n\n{_fence(lines[:MAX_NAMES])}{_more(lines, MAX_NAMES)}{_notes(result)}"


def _describe_matches(arguments: Mapping[str, Any], result: ToolResult) -> str:
    lines = [line for line in output_lines(result.text) if line.strip() and line != "Names that match:"]
    glob = arguments.get("glob")
    if glob and arguments["pattern"] == name_pattern(str(glob)):  # a search for names, in which lines count for nothing
        lines = [line for line in lines if not re.search(r":\d+: ", line)]
        found, wanted = _count(len(lines), "file"), f"`{glob}`"
    else:
        found, wanted = _count(len(lines), "match", "matches"), f"`{arguments['pattern']}`"
    if not lines:
        return f"Nothing found for {wanted}."
    return f"{found} for {wanted}:\n\n{_fence(lines[:MAX_NAMES])}{_more(lines, MAX_NAMES)}{_notes(result)}"


def escape_pattern(text: str) -> str:
    """Return the regular expression that finds a text as it stands."""
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


def name_pattern(glob: str) -> str:
    """Return the regular expression that finds the names of a glob such as `*.py`."""
    return f"{escape_pattern(glob.lstrip('*'))}$"


def _describe_command(arguments: Mapping[str, Any], result: ToolResult) -> str:
    command = one_line(str(arguments["command"]), 80)
    signal = next((found["signal"] for found in _ENDED.finditer(result.text) if found["signal"]), None)
    status = _EXIT.search(result.text)
    if "it did not end in time" in result.text[-200:]:
        how = "did not end in time and was stopped"
    elif signal is not None:
        how = f"was ended by {signal}"
    elif status is not None and status[1] != "0":
        how = f"failed with exit status {status[1]}"
    else:
        how = "failed" if result.failed else "succeeded" if status is not None else "ran"
    lines = [line for line in output_lines(result.text) if not _ENDED.fullmatch(line)]
    if not lines:
        return f"`{command}` {how}, with no output."
    cut = "" if len(lines) <= MAX_NAMES else f"; the last {MAX_NAMES} of {_count(len(lines), 'line')}"
    return f"`{command}` {how}{cut}:\n\n{_fence(lines[-MAX_NAMES:])}"


def _describe_answer(title: str, result: ToolResult) -> str:
    lines = result.text.rstrip("\n").split("\n") if result.text.strip() else []
    if not lines:
        return f"`{title}` is done; it returned nothing."
    if len(lines) == 1 and len(lines[0]) <= MAX_WIDTH:
        return f"`{title}` says: {lines[0].strip()}"
    return f"`{title}` says:\n\n{_fence(lines[:MAX_NAMES])}{_more(lines, MAX_NAMES)}"


def _notes(result: ToolResult) -> str:
    found = result.text.rstrip("\n").split("\n")[len(output_lines(result.text)) :]
    return f"\n\n({'; '.join(note[1:-1] for note in found)})" if any(found) else ""


def _more(lines: list[str], shown: int) -> str:
    return f"\n\nand {len(lines) - shown:,} more." if len(lines) > shown else ""


def _count(number: int, one: str, many: str = "") -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {many or f'{one}s'}"


def _fence(lines: list[str]) -> str:
    shown = "\n".join(line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}…" for line in lines)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"


_TOLD: dict[str, Callable[[Mapping[str, Any], ToolResult], str]] = {
    "read_file": _describe_text,
    "list_directory": _describe_listing,
    "search_files": _describe_matches,
    "run_command": _describe_command,
    "write_file": lambda arguments, _: f"Wrote `{arguments['path']}`.",
    "edit_file": lambda arguments, _: f"Changed `{arguments['path']}`.",
    "update_plan": lambda arguments, _: f"The plan has {_count(len(arguments['entries']), 'entry', 'entries')}.",
}
