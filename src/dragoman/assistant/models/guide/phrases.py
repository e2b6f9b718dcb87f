"""Phrases for the built-in tools: patterns of requests, each with the routine that it starts.

A pattern has to fit the whole request, without the courtesy around it. `<path>` in a pattern stands for a word that is
surely a path, by its looks or because it is quoted; `<name>` for any word, which is a guess: such patterns are tried
after the tools of servers. A text for a file is taken only where it is marked, by quotes, a code block or a colon.
"""

import enum
import re
from collections.abc import Callable, Iterable

import msgspec

from dragoman.assistant.models.guide.prompt import TOKEN, Words, is_quoted, without_courtesy, without_lead
from dragoman.assistant.models.guide.routines import GuideRoutine

KNOWN_FILES = {
    "readme": "README.md",
    "makefile": "Makefile",
    "license": "LICENSE",
    "licence": "LICENSE",
    "dockerfile": "Dockerfile",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
}
ENDINGS = {
    "python": "py", "javascript": "js", "typescript": "ts", "markdown": "md", "rust": "rs", "ruby": "rb", "text": "txt",
    "shell": "sh", "bash": "sh", "yaml": "yaml", "json": "json", "html": "html", "css": "css", "toml": "toml",
    "java": "java", "go": "go", "c": "c", "c++": "cpp", "sql": "sql", "xml": "xml", "php": "php", "csv": "csv",
}  # fmt: skip

_WORD = rf"(?:{TOKEN}|[^\s,;:?!]+)"
_PATH = (
    rf"(?P<path>{TOKEN}|(?![a-z]+://)(?:@?[^\s,;:?!]*/[^\s,;:?!]*|~|\.\.?|@?[^\s/,;:?!]*\.[a-z]\w{{0,9}}"
    rf"|{'|'.join(KNOWN_FILES)}|it|(?:this|that|the) file))"
)
_BLOCKS = {
    "path": f"(?:(?:the )?file )?{_PATH}",
    "name": rf"(?:(?:the )?(?:file|folder|directory) )?(?P<path>{_WORD})",
    "other": f"(?P<other>{_WORD})",
    "text": f"(?P<text>{TOKEN})",
    "word": f"(?P<word>{_WORD})",
    "count": r"(?P<count>\d+)",
    "kind": f"(?P<kind>{'|'.join(map(re.escape, sorted(ENDINGS, key=len, reverse=True)))})",
    "the": "(?:(?:the|a|an|my|our|this|that|all|every|any|of|its?|your|these|those|some|each) )*",
    "here": (
        "(?:here|(?:the |this |my |our )?(?:current |working |whole |entire |project |source )*"
        "(?:directory|folder|dir|project|repo|repository|code ?base|code|workspace|sources?|files))"
    ),
    "folder": "(?:folder|directory|dir|subdirectory)",
    "in": "(?:in|of|from|inside|under|within|at)",
    "is": "(?:'?s| is| are| was| were)",
    "show": "(?:show|read|open|view|display|print|cat|see|get|give|look at|look into|(?:have|take) a look at)(?: me)?",
    "list": "(?:list|ls|show|display|print|give|see|get|find|what are)(?: me)?",
    "find": "(?:find|search(?: for)?|grep(?: for)?|look for|look up|locate|where is|where are)",
    "make": "(?:write|create|make|add|save|touch|new)",
    "called": "(?:called |named )?",
    "remove": "(?:delete|remove|erase|rm)",
    "replace": "(?:replace|change|substitute|swap|rename)",
    "by": "(?:by|with|to|into|for|->|→)",
    "defined": "(?:defined|used|called|imported|declared)",
}
"""The blocks that patterns are made of, each written `<name>` in them."""


class Trust(enum.Enum):
    """How sure a phrase is of what it means."""

    SURE = "sure"
    GUESS = "guess"
    """Tried after the tools of servers, whose words may fit better: `list issues`."""
    COMMAND = "command"
    """Tried last, because any words behind `run` can be a command."""


class Request(msgspec.Struct, frozen=True):
    """A request that fits a pattern: the matched pieces, and the file that "it" means."""

    words: Words
    pieces: dict[str, str | None]
    last_path: str | None = None

    def get(self, name: str) -> str:
        """Return a piece as the person meant it, without marks around it; empty when there is none."""
        return self.words.value(self.pieces.get(name) or "")

    def is_quoted(self, name: str) -> bool:
        """Tell whether the person put a piece in quotes."""
        return is_quoted(self.pieces.get(name) or "")

    @property
    def path(self) -> str | None:
        """The path that is named; None when none is, or when it is "it" and there was no file before."""
        piece = self.get("path")
        if self.is_quoted("path") or not piece:
            return piece or None
        if re.fullmatch(r"it|(?:this|that|the)\s+file", piece, re.IGNORECASE):
            return self.last_path
        bare = piece[1:] if piece.startswith("@") and len(piece) > 1 else piece
        return KNOWN_FILES.get(bare.lower(), bare.rstrip(".") or bare)


Answer = Callable[[Request], GuideRoutine | None]


class Phrase(msgspec.Struct, frozen=True):
    """A pattern and the routine that it starts; a verbatim one keeps the end of the sentence."""

    pattern: re.Pattern[str]
    answer: Answer
    trust: Trust
    is_verbatim: bool


def _compile(pattern: str) -> re.Pattern[str]:
    filled = pattern
    while (replaced := re.sub(r"(?<!\?P)<(\w+)>", lambda found: _BLOCKS[found[1]], filled)) != filled:
        filled = replaced
    spaced = filled.replace("'", "['\u2019]").replace(" ?", r"\s*").replace(" ", r"\s+")
    return re.compile(spaced, re.IGNORECASE | re.DOTALL)


_ONLY_PATH = _compile(_PATH)


class PhraseBook:
    """Phrases in the order in which they are tried."""

    def __init__(self, phrases: Iterable[Phrase] = ()) -> None:
        self.phrases = list(phrases)

    def add(self, *patterns: str, trust: Trust = Trust.SURE, verbatim: bool = False) -> Callable[[Answer], Answer]:
        """Register the function that answers requests of these patterns."""

        def register(answer: Answer) -> Answer:
            self.phrases.extend(Phrase(_compile(pattern), answer, trust, verbatim) for pattern in patterns)
            return answer

        return register

    def find(self, words: Words, last_path: str | None, trust: Trust = Trust.SURE) -> GuideRoutine | None:
        """Return the routine of the first phrase that fits a request."""
        whole, verbatim = without_courtesy(words.text), without_lead(words.text)
        for phrase in self.phrases:
            if phrase.trust is trust:
                found = phrase.pattern.fullmatch(verbatim if phrase.is_verbatim else whole)
                routine = phrase.answer(Request(words, found.groupdict(), last_path)) if found else None
                if routine is not None:
                    return routine
        return None

    def takes_rest(self, words: Words) -> bool:
        """Tell whether a request ends in a text that is taken as it stands, whatever it says."""
        text = without_lead(words.text)
        return any(phrase.is_verbatim and phrase.pattern.fullmatch(text) for phrase in self.phrases)

    def words(self) -> set[str]:
        """Return the words that the patterns are made of, for mending typing errors."""
        patterns = (phrase.pattern.pattern for phrase in self.phrases)
        return {word for pattern in patterns for word in re.findall(r"(?<![?\\<\w])[a-z]{3,}", pattern)}


def is_path(words: Words) -> bool:
    """Tell whether a text is a path and nothing else."""
    return _ONLY_PATH.fullmatch(without_courtesy(words.text)) is not None
