"""What in a sentence points to which parameter, and which of its words are used already."""

import re
from functools import lru_cache

from dragoman.assistant.models.guide.words import split_words

PLACE_NAMES = ("city", "location", "place", "town", "address", "country", "destination", "where", "region")
FREE_NAMES = (
    "query", "title", "message", "text", "content", "name", "subject", "q", "prompt", "summary", "expression", "sql",
    "statement", "question", "body", "keyword", "search", "term", "input", "thought", "task", "note", "topic", "word",
)  # fmt: skip
COUNT_NAMES = ("limit", "count", "max", "top", "num", "n", "size", "results")
ENUM_WORD = re.compile(r"[\w][\w\s.+#-]*\Z")

AFFINITY: dict[str, tuple[str, ...]] = {
    "in": (*PLACE_NAMES, "language", "unit", "units", "channel", "calendar", "collection", "project", "table"),
    "at": (*PLACE_NAMES, "time"),
    "near": PLACE_NAMES,
    "for": (*PLACE_NAMES, "query", "q", "search", "name", "term", "keyword", "symbol", "ticker", "user", "username"),
    "of": (*PLACE_NAMES, "name", "symbol", "ticker", "word", "table", "user", "username", "id"),
    "about": ("query", "q", "topic", "subject", "search", "keyword", "term", "title"),
    "regarding": ("query", "topic", "subject"),
    "on": ("date", "day", "topic", "branch", "channel"),
    "from": ("from", "source", "origin", "base", "sender", "author", "since", "start", "table"),
    "to": ("to", "target", "destination", "recipient", "language", "email", "branch", "channel", "end"),
    "into": ("to", "target", "destination", "language"),
    "with": ("message", "content", "text", "body", "attendees", "participants", "target"),
    "by": ("author", "user", "username", "assignee", "creator"),
    "named": ("name", "title", "filename", "branch"),
    "called": ("name", "title", "filename", "branch"),
    "titled": ("title", "name", "subject", "summary"),
    "as": ("name", "title", "alias", "format"),
    "saying": ("message", "text", "body", "content"),
    "that": ("message", "text", "content", "observation", "note"),
    "since": ("since", "start", "from", "after"),
    "until": ("until", "end", "before"),
}  # fmt: skip


class Blank:
    """A text whose used pieces become blanks, so that places in it stay where they are."""

    def __init__(self, text: str) -> None:
        self.text = text

    def use(self, start: int, end: int) -> None:
        """Blank a piece."""
        self.text = f"{self.text[:start]}{' ' * (end - start)}{self.text[end:]}"


@lru_cache(4096)
def spellings(name: str) -> tuple[str, ...]:
    """Return the ways in which a person may write a parameter's name, the longest first."""
    words = split_words(name)
    found = {name, name.replace("_", " "), name.replace("_", "-"), " ".join(words)} if words else {name}
    if words[:1] == ("sort",):
        found |= {"sorted by", "ordered by", "order by"}
    return tuple(sorted((one for one in found if one.strip()), key=lambda one: (-len(one), one)))
