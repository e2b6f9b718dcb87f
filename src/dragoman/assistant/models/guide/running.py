"""Ordinary words for commands and plans."""

import re
import shlex

from dragoman.assistant.models.guide.literal import TOKEN, Masked, is_token
from dragoman.assistant.models.guide.path import bare, trim
from dragoman.assistant.models.guide.phrase import FAINT, STRONG, WEAK, Phrase, any_case
from dragoman.assistant.models.guide.prompt import without_ending
from dragoman.assistant.models.guide.words import vocabulary

_PLAN = any_case(r"(?:plan|todo|to-do|make (?:me )?a plan)\s*:\s*(.+)")
_ITEM = re.compile(r"[ \t]*(?:\d{1,3}[.)]|[-*•])[ \t]+")


def read_plan(masked: Masked, text: str) -> Phrase | None:
    """Return the plan that a text sets."""
    found = _PLAN.match(text)
    if found is None:
        return None
    rest = found[1].strip()
    pieces = re.split(r"\s*;\s*|\s*\n\s*", rest)
    if len(pieces) == 1:
        pieces = re.split(r"\s*,\s+(?:and\s+)?(?:then\s+)?|\s+(?:and\s+)?then\s+", rest)
    entries = [trim(masked.restore(_ITEM.sub("", piece, count=1))) for piece in pieces]
    entries = [re.sub(r"\A(?:and then|then|and)\s+", "", entry) for entry in entries if entry]
    return Phrase("plan", {"entries": entries}) if entries else None


_RUN = any_case(r"(?:(?:run|execute|exec)\s*:?\s+|\$\s+|!\s?)(?:(?:the )?(?:shell )?command:?\s+)?(.+)")
_RUN_IN = any_case(
    rf"({TOKEN})\s+(?:in|inside|from)\s+(?:the )?(?:directory |folder )?({TOKEN}|\S+?)(?: directory| folder)?\Z"
)
_NO_COMMAND = any_case(
    r"(?:the|my|a|an|all|this|that|these|our|your|some|it)\b|(?:tests?|build|app|application|program|linters?|code|query)\Z"
)
_SEVERAL = any_case(rf"{TOKEN}(?:(?:\s*,\s*|\s+)(?:and\s+)?(?:then\s+)?{TOKEN})+\Z")
_COURTESY = any_case(r"(?:,?\s+(?:please|for me))+[.!?]*\Z|(?<=\w)\.\Z")
_TERMINAL = any_case(r"\s+in (?:the|a) (?:shell|terminal|console)\Z")
_COMMANDS = vocabulary(
    "git make npm npx yarn pnpm pytest python python3 pip uv cargo docker kubectl node echo pwd whoami date uname ruff "
    "tox mvn gradle bash sh curl wget tail head wc sed awk diff mkdir touch chmod ls cat grep find tree du df ps env "
    "sleep which sort rg go true false exit cd mv cp rm seq test"
)
_TALKATIVE = frozenset(
    (
        "make",
        "go",
        "date",
        "test",
        "which",
        "find",
        "sort",
        "head",
        "tail",
        "touch",
        "true",
        "false",
        "exit",
        "diff",
        "sleep",
        "tree",
        "node",
        "echo",
        "env",
        "python",
    )
)
_ARGUMENT = re.compile(
    r"-{1,2}[\w-]+|[\w.-]*[/.=:][\w./=:-]*|\d+|(?:all|build|test|tests|install|clean|check|run|lint|fmt|vet|mod|format|docs|dev)\Z"
)


def read_run(masked: Masked, text: str) -> Phrase | None:
    """Return the command that a text asks for."""
    found = _RUN.match(text)
    if found is None:
        return _bare_command(masked, text)
    command = _TERMINAL.sub("", _COURTESY.sub("", found[1].strip()))
    if text != masked.text.strip() and command.endswith("?"):
        command = command[:-1].rstrip()
    several = _SEVERAL.match(without_ending(command))
    if several is not None:
        return Phrase("run", {"command": " && ".join(masked.restore(one) for one in re.findall(TOKEN, command))})
    inside = _RUN_IN.match(without_ending(command))
    if inside is not None:
        place = bare(masked.restore(inside[2]))
        return Phrase("run", {"command": f"cd {shlex.quote(place)} && {masked.restore(inside[1])}"})
    if _NO_COMMAND.match(without_ending(command)):
        return Phrase("run", {}, FAINT)
    whole = without_ending(command)
    return Phrase("run", {"command": masked.restore(whole if is_token(whole) else command).strip()})


def _bare_command(masked: Masked, text: str) -> Phrase | None:
    """A command that was typed as into a shell."""
    words = text.split()
    if not words or "\n" in text or words[0] not in _COMMANDS or text.endswith("?"):
        return None
    sure = any(word.startswith("-") and len(word) > 1 and "_" not in word for word in words[1:]) or any(
        mark in text for mark in ("|", " > ", "&&")
    )
    if words[0] in ("ls", "cat", "grep", "find") and not sure:
        return None
    if (
        words[0] in _TALKATIVE
        and not sure
        and not (len(words) > 1 and _ARGUMENT.match(words[1]) and not is_token(words[1]))
    ):
        return None
    return Phrase("run", {"command": masked.restore(text)}, STRONG if sure else WEAK)
