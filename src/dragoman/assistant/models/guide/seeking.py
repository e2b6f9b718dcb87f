"""Ordinary words for a search: what to look for, where, and in which files."""

import re
from typing import Any

import msgspec

from dragoman.assistant.models.guide.literal import TOKEN, Masked, is_token
from dragoman.assistant.models.guide.path import bare, is_glob, looks_like_file, path_of, trim
from dragoman.assistant.models.guide.words import vocabulary

_PLACE = rf"(?:{TOKEN}|\S+)"
_SEARCH = re.compile(
    r"(?:search|grep|find|locate|look|where\s+(?:is|are|does|do)|in\s+which\s+files?\s+(?:is|are|does)|(?:which|what)\s+files?\s+(?:contains?|mentions?|uses?|have|has))\b(?P<rest>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_FOR_IN_FRONT = re.compile(
    rf"(?:in|through|inside)?\s*(?P<the>the\s+)?(?P<place>{_PLACE})\s+for\s+(?P<what>.+)\Z", re.IGNORECASE | re.DOTALL
)
_IN = re.compile(
    rf"\s+(?:in|inside|under|within|across|only)\s+(?:the\s+|all\s+(?:the\s+)?|any\s+|only\s+)?(?P<place>{_PLACE})(?:\s+(?:directory|folder|dir|files?|only))*\Z",
    re.IGNORECASE,
)
_EVERYWHERE = re.compile(
    r"\s+(?:everywhere\s+)?(?:in|across|within)\s+(?:here|everything|everywhere|(?:the|this|my|all|every|any|our)(?:\s+(?:the|whole|entire|current))*\s+(?:project|repo|repository|code|codebase|files?|directory|folder|workspace|sources?))\Z",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(
    r"\s+in\s+(?:the\s+|all\s+)*(?P<language>python|javascript|typescript|markdown|rust|go|java|yaml|json|toml|html|css|c|text|shell)\s+(?:files?|code|sources?)\Z",
    re.IGNORECASE,
)
_GLOBS = {
    "python": "*.py", "javascript": "*.js", "typescript": "*.ts", "markdown": "*.md", "rust": "*.rs", "go": "*.go",
    "java": "*.java",
    "yaml": "*.yaml", "json": "*.json", "toml": "*.toml", "html": "*.html", "css": "*.css", "c": "*.c",
    "text": "*.txt", "shell": "*.sh",
}  # fmt: skip
_FILLER = re.compile(
    r"(?:(?:for|all|every|any|each|(?:the\s+)?(?:word|text|string|phrase|symbol|function|class|method|variable|name|pattern|regex)|the|"
    r"(?:occurrences?|uses?|usages?|instances?|mentions?|definitions?)\s+of|references\s+to|lines\s+(?:with|containing)|places\s+with|"
    r"files?\s+(?:containing|with|mentioning|that\s+(?:contain|mention|use))|anything\s+(?:about|with|like))\s+)+",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"(?:for\s+)?(?:all\s+)?(?:the\s+|a\s+)?files?\s+(?:named|called|matching)\s+(?P<name>{_PLACE})\Z", re.IGNORECASE
)
_GLOB_FILES = re.compile(rf"(?:for\s+)?(?:all\s+)?(?:the\s+)?(?P<glob>{_PLACE})(?:\s+files?)?\Z", re.IGNORECASE)
_DEFINED = re.compile(r"\s+(?:defined|used|called|mentioned|implemented|declared|imported|set)\Z", re.IGNORECASE)
_TALK = vocabulary("me my you your a an some someone something somebody out how why what whether us good best i")


class FileSearch(msgspec.Struct, frozen=True):
    """A search, and whether the words leave no doubt that files are meant."""

    roles: dict[str, Any]
    sure: bool


def read_search(masked: Masked, text: str) -> FileSearch | None:
    """Return the search that a text asks for."""
    found = _SEARCH.match(text)
    if found is None:
        return None
    is_where, rest = text[:5].lower() == "where", found["rest"].strip()
    if text[:4].lower() == "look" and not rest.lower().startswith("for "):
        return None
    rest, place, vague = _take_place(masked, rest)
    named = _NAMED.match(rest)
    if named is not None:
        return _by_name(masked, named["name"], place)
    if rest.lower().startswith("where "):
        is_where, rest = True, re.sub(r"\s+(?:is|are)(?=\s+\w+\Z)", "", rest[6:])
    if is_where:
        rest, defined = _DEFINED.subn("", rest)
        if not defined and not is_token(rest):
            return None
    search = _by_text(masked, rest, place)
    return msgspec.structs.replace(search, sure=False) if search is not None and vague else search


def _take_place(masked: Masked, text: str) -> tuple[str, dict[str, str], bool]:
    """Take off where to search, as often as the words say it; the place may be vague."""
    place: dict[str, str] = {}
    for _ in range(3):
        shorter, more = _one_place(masked, text)
        if shorter == text:
            break
        text, place = shorter, {**more, **place}
    front = _FOR_IN_FRONT.match(text)
    if front is not None and not place and front["place"].lower() not in ("for", "all"):
        word = front["place"]
        path = path_of(masked, word) or (bare(word) if re.match(r"[\w.-]+\Z", word) and not front["the"] else None)
        if path is not None:
            return front["what"], _glob_or_path(path), path_of(masked, word) is None
    return text, place, False


def _one_place(masked: Masked, text: str) -> tuple[str, dict[str, str]]:
    if (everywhere := _EVERYWHERE.search(text)) is not None:
        return text[: everywhere.start()], {}
    if (language := _LANGUAGE.search(text)) is not None:
        return text[: language.start()], {"glob": _GLOBS[language["language"].lower()]}
    found = _IN.search(text)
    if found is None or not text[: found.start()].strip():
        return text, {}
    word = found["place"]
    path = path_of(masked, word)
    if path is None and (is_glob(word) or re.match(r"[\w.-]+\Z", word)):
        path = bare(word)
    return (text, {}) if path is None else (text[: found.start()], _glob_or_path(path))


def _glob_or_path(path: str) -> dict[str, str]:
    return {"glob": path} if is_glob(path) else {"path": path}


def _by_name(masked: Masked, word: str, place: dict[str, str]) -> FileSearch | None:
    name = masked.restore(word)
    if is_glob(name):
        return FileSearch({"pattern": _longest_plain(name), "glob": name, **place}, sure=True)
    return FileSearch({"pattern": trim(name), **place}, sure=True) if trim(name) else None


def _longest_plain(glob: str) -> str:
    """Return what every name that matches holds, as a search looks for text and not for names alone."""
    return max(re.split(r"[*?\[\]]+", glob.rsplit("/", 1)[-1]), key=len) or "."


def _by_text(masked: Masked, text: str, place: dict[str, str]) -> FileSearch | None:
    files = _GLOB_FILES.match(text)
    if (
        files is not None
        and not is_token(files["glob"])
        and is_glob(files["glob"])
        and not re.search(r"[\\(^$|+]", files["glob"])
    ):
        return _by_name(masked, files["glob"], place)
    plain = _FILLER.sub("", text, count=1) if _FILLER.match(text) else text
    pattern = masked.restore(plain)
    if not pattern.strip():
        return None
    if is_token(plain):
        return FileSearch({"pattern": pattern, **place}, sure=True)
    pattern = re.sub(r"\A([A-Z]{2,})s\Z", r"\1", pattern)
    words = pattern.lower().split()
    if len(words) > 3 or _TALK.intersection(words):
        return None
    certain = _certain(place) or (len(words) == 1 and re.search(r"[A-Z_(){}\d]", pattern[1:]) is not None)
    if not certain and re.match(r"(?:for\s+)?the\s", text, re.IGNORECASE):
        return None
    return FileSearch({"pattern": pattern, **place}, sure=certain)


def _certain(place: dict[str, str]) -> bool:
    path = place.get("path", "")
    return "glob" in place or "/" in path or path.startswith((".", "~")) or looks_like_file(path)
