"""Things in a sentence that show by their looks what they are: numbers, paths, places, with where they stand."""

import re
from collections.abc import Iterator

import msgspec

from dragoman.assistant.models.guide.literal import TOKEN, Masked
from dragoman.assistant.models.guide.path import bare, is_url, looks_like_file, looks_like_path
from dragoman.assistant.models.guide.schema import Parameter
from dragoman.assistant.models.guide.value import is_about
from dragoman.assistant.models.guide.words import STOP, mean, meanings, split_words
from dragoman.assistant.models.guide.zone import find_zone

FOLDER_NAMES = ("repo", "repository", "directory", "dir", "folder", "root", "cwd", "workspace")
PATH_NAMES = ("path", "file", "filename", "filepath", "directory", "dir", "folder", "repo")
PATHS_NAMES = (*PATH_NAMES, "paths", "files", "filenames", "directories", "folders")
OLD_NAMES = ("source", "src", "from", "old", "origin")
NEW_NAMES = ("destination", "dest", "dst", "target", "to", "new")

_WORD = re.compile(rf"{TOKEN}|[^\s,]+")
_AMOUNT = r"\d{1,9}(?:\.\d{1,9})?|one|two|three|four|five|six|seven|eight|nine|ten"
_MEASURED = re.compile(rf"(?<![#\w.:/-])({_AMOUNT})\s+([a-z]{{3,}})", re.IGNORECASE)
_COUNTED = re.compile(rf"\b(?:last|latest|first|top|recent|newest|only)\s+({_AMOUNT})\b", re.IGNORECASE)
_FROM_TO = re.compile(rf"({TOKEN}|[^\s,]+)\s+(?:to|into|as|->)\s+(?:the\s+)?({TOKEN}|[^\s,]+)", re.IGNORECASE)
_INSIDE = re.compile(r"\b(?:in|of|from|at|under|inside|for)\s+(?:the\s+)?\Z", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`]([A-Za-z][\w-]{1,30})['\"`]")

TextSpan = tuple[int, int]


class Sighting(msgspec.Struct, frozen=True):
    """A piece of a sentence, what it stands for, and the word before or after it that tells more."""

    value: str
    span: TextSpan
    word: str = ""


def find_paths(text: str) -> list[Sighting]:
    """Return the words that are surely paths."""
    found = [word for word in _WORD.finditer(text) if _is_path(word[0])]
    return [Sighting(bare(word[0]), (word.start(), word.start() + len(word[0].rstrip(".,;:!?")))) for word in found]


def _is_path(word: str) -> bool:
    return looks_like_path(word) and not is_url(word) and re.match(r"\d+(?:\.\d+)+", word) is None


def find_path(text: str, parameter: Parameter) -> Sighting | None:
    """Return the path for a parameter: for one that is a directory, none that looks like a file."""
    found = find_paths(text)
    if is_about(parameter, *FOLDER_NAMES):
        found = [one for one in found if not looks_like_file(one.value) or one.value.endswith(".git")]
        found.sort(key=lambda one: _INSIDE.search(text, 0, one.span[0]) is None)
    return found[0] if found else None


def find_move(text: str) -> tuple[Sighting, Sighting] | None:
    """Return both ends of `a.txt to b.txt`."""
    found = _FROM_TO.search(text)
    if found is None:
        return None
    return Sighting(bare(found[1]), found.span(1)), Sighting(bare(found[2]), found.span(2))


def find_amounts(text: str) -> list[Sighting]:
    """Return the numbers that stand before what they count, `6 steps`."""
    return [Sighting(found[1], found.span(1), found[2].lower()) for found in _MEASURED.finditer(text)]


def is_amount_of(amount: Sighting, parameter: Parameter) -> bool:
    """Tell whether a number is counted in what a parameter is, or is measured in."""
    unit = mean(amount.word)
    return unit in meanings(parameter.name) or (
        unit in meanings(parameter.description) and amount.word.lower() in split_words(parameter.description)
    )


def find_count(text: str) -> Sighting | None:
    """Return the number of `last 5 commits`, `top 3` and `10 results`."""
    found = _COUNTED.search(text) or _MEASURED.search(text)
    return None if found is None else Sighting(found[1], found.span(1))


def find_zones(text: str, step: Masked) -> Iterator[Sighting]:
    """Yield the places that have a time zone, each with the preposition before it."""
    words = list(re.finditer(rf"{TOKEN}|[A-Za-z_/+-]+\d*", text))
    index = 0
    while index < len(words):
        for length in (3, 2, 1):
            run = words[index : index + length]
            name = step.restore(" ".join(word[0] for word in run))
            zone = find_zone(name) if len(run) == length and name.lower() not in STOP else None
            if zone is not None:
                before = words[index - 1][0].lower() if index else ""
                known = before if before in ("in", "to", "from", "for", "at") else ""
                yield Sighting(zone, (run[0].start(), run[-1].end()), known)
                index += length - 1
                break
        index += 1


def hints(parameter: Parameter) -> list[str]:
    """Return the values that a description quotes, for a parameter whose schema names none."""
    return list(dict.fromkeys(_QUOTED.findall(parameter.description)))
