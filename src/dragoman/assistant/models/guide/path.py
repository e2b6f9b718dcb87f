"""Words that name files: told from other words by their looks alone, because a model opens nothing."""

import re

from dragoman.assistant.models.guide.literal import Masked, is_token
from dragoman.assistant.models.guide.words import vocabulary

_BARE_FILES = vocabulary(
    "readme makefile license licence dockerfile changelog gemfile procfile justfile contributing authors notice"
)
_EXTENSION = re.compile(r"[^\s/]+\.[A-Za-z][A-Za-z0-9_]{0,9}\Z|[^\s/]+\.(?:7z|\d)\Z")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[A-Za-z]{2,}\Z")
_ENDING = re.compile(r"(?<=[^\s./])[.,;:!?]+\Z|[?!,;:]+\Z")
_HERE = re.compile(
    r"(?:here|\.|(?:(?:in|of) )?(?:the |this |my |our )?(?:current |working |project |root )?"
    r"(?:directory|folder|dir|project|repo|repository|workspace|cwd|root))\Z",
    re.IGNORECASE,
)


def is_url(word: str) -> bool:
    """Tell whether a word is an address."""
    return _URL.match(word) is not None


def looks_like_path(word: str) -> bool:
    """Tell whether a word is surely meant as a path."""
    word = trim(word)
    if (
        not word
        or " " in word
        or is_url(word)
        or _EMAIL.match(word)
        or word.lower() in ("and/or", "either/or", "e.g", "i.e")
    ):
        return False
    if "/" in word or word.startswith(("~", ".", "@")) or word.lower() in _BARE_FILES:
        return True
    return _EXTENSION.match(word) is not None


def looks_like_file(word: str) -> bool:
    """Tell whether a path names a file rather than a directory."""
    last = trim(word).rstrip().rsplit("/", 1)[-1]
    return last.lower() in _BARE_FILES or (_EXTENSION.match(last) is not None)


def is_glob(word: str) -> bool:
    """Tell whether a word is a pattern of file names."""
    return any(mark in word for mark in "*?[") and not is_url(word)


def trim(word: str) -> str:
    """Take the end of the sentence off a word; a directory keeps its dots."""
    return _ENDING.sub("", word.strip())


def path_of(masked: Masked, word: str) -> str | None:
    """Return the path that a word names, when it is one beyond doubt: marked as literal, or by its looks."""
    if is_token(word):
        value = masked.restore(word)
        return value if value.strip() else None
    if _HERE.match(word):
        return "."
    return bare(word) if looks_like_path(word) else None


def bare(word: str) -> str:
    """Return a path as it stands, without the mark of a mention."""
    word = trim(word)
    return word[1:] if word.startswith("@") and len(word) > 1 else word
