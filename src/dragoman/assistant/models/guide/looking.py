"""Ordinary words for looking at files and directories."""

import re

from dragoman.assistant.models.guide.literal import TOKEN, Masked
from dragoman.assistant.models.guide.path import bare, is_url, looks_like_file, path_of, trim
from dragoman.assistant.models.guide.phrase import STRONG, WEAK, Phrase, any_case
from dragoman.assistant.models.guide.prompt import without_ending
from dragoman.assistant.models.guide.words import vocabulary

_LINES = any_case(
    r",?\s*(?:\b(?:from|at|between|on)\s+)?(?:the\s+)?\blines?\s+(?P<first>\d{1,9})"
    r"(?:\s*(?:-|\u2013|to|through|until|and|\.\.)\s*(?P<last>\d{1,9})|\s+(?:on|onwards?))?(?:\s+(?:of|in|from)\b)?"
)
_TOP = any_case(r"(?:the\s+)?\b(?:first|top)\s+(?P<count>\d{1,9})\s+lines?(?:\s+(?:of|in|from)\b)?")
_COLON = re.compile(r":(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?\Z")
_PATH = rf"(?P<path>{TOKEN}|\S+?)"
_IS = r"(?:'s|\u2019s|\s+is)"
_FOLDER = r"(?:directory|folder|dir)"
_READ = any_case(
    r"(?P<verb>read|cat|open|view|show|display|print|see|look at|look into|let me see|give me|get|output|dump|check|"
    r"examine|inspect)\s+(?:me\s+|us\s+)?(?P<article>(?:the|my|our|this)\s+)?"
    r"(?:(?:whole\s+)?(?:contents?|text|source|beginning|start|head)\s+(?:of|from|in)\s+(?:the\s+)?)?"
    rf"(?P<mark>file\s+)?{_PATH}(?:\s+file)?\Z"
)
_WHAT = any_case(
    rf"(?:what(?:{_IS}|\s+are|\s+files\s+are|\s+do\s+you\s+see)|which\s+files\s+are|"
    rf"(?:show\s+(?:me\s+)?|tell\s+me\s+)what{_IS})\s+(?:there\s+)?"
    rf"(?:in|inside|under|at)(?:side)?\s+(?:of\s+)?(?P<article>the\s+)?(?P<mark>file\s+)?{_PATH}(?P<folder>\s+{_FOLDER})?\Z"
)
_SAYS = any_case(
    rf"what{_IS}\s+the\s+(?:contents?|text)\s+of\s+(?:the\s+)?(?:file\s+)?(?P<file>{TOKEN}|\S+)\Z|what\s+does\s+(?:the\s+)?(?:file\s+)?(?P<path>{TOKEN}|\S+)\s+(?:say|contain|look\s+like|have)(?:\s+in\s+it)?\Z"
)
_THING = rf"(?:files\s+and\s+(?:folders|directories)|files|contents?|entries|items|everything|{_FOLDER})"
_LISTS = r"(?:list|ls|show(?:\s+me)?)"
_LIST = any_case(
    rf"(?P<verb>list|ls|dir|(?:show|give)(?:\s+me)?)(?:\s+me)?(?:\s+all(?:\s+of)?)?(?P<article>\s+(?:the|my))?"
    rf"(?P<thing>\s+{_THING})?(?:\s+(?:in|of|inside|under|at|from|for))?(?:\s+the)?(?:\s+(?:directory|folder))?"
    rf"(?:\s+{_PATH})?(?P<folder>\s+{_FOLDER})?\Z"
)
_PLACE = r"(?:(?:the|this|my)\s+(?:current\s+|working\s+)?(?:directory|folder|project|repo(?:sitory)?|workspace))"
_HERE = any_case(
    rf"(?:what{_IS}\s+(?:here|around|in\s+here|(?:in\s+)?(?:this|the\s+(?:current|working))\s+(?:directory|folder|project))"
    r"|(?:what|which)\s+files\s+(?:are\s+(?:there|here)|(?:do|can)\s+(?:i|we|you)\s+(?:have|see))(?:\s+here)?"
    rf"|look\s+around|{_LISTS}\s+(?:this|the\s+current|the\s+working)\s+(?:directory|folder|project)"
    rf"|{_LISTS}(?:\s+(?:all\s+)?(?:the\s+|my\s+|our\s+)?(?:files|contents?|everything|it\s+all))?"
    rf"(?:\s+(?:here|(?:in|of)\s+(?:here|{_PLACE})))?)\Z"
)


def read_reading(masked: Masked, text: str) -> Phrase | None:
    """Return the file, and the lines of it, that a text wants to see."""
    whole, lines = _take_lines(without_ending(text))
    found = _READ.match(whole) or _SAYS.match(whole)
    if found is None:
        alone = trim(whole)
        path = path_of(masked, alone) if (lines or looks_like_file(alone)) and " " not in alone else None
        return None if path is None else _reading(path, lines, STRONG if lines else WEAK)
    marks = found.groupdict()
    word, colon = _take_colon(found["path"] or marks["file"])
    path = path_of(masked, word)
    if path is not None and not is_url(path):
        return _listing(path) if path.endswith("/") or path in (".", "..") else _reading(path, lines or colon, STRONG)
    if marks.get("mark"):
        return _reading(bare(word), lines, STRONG)
    single = marks.get("verb", "").lower() in ("read", "cat", "view") and not marks.get("article") and not is_url(word)
    return (
        _reading(bare(word), lines, WEAK)
        if single and re.match(r"[\w-]+\Z", word) and word.lower() not in _PRONOUNS
        else None
    )


_PRONOUNS = vocabulary("it that this them me you more everything something anything minds mind")


def _take_lines(text: str) -> tuple[str, dict[str, int]]:
    found = _LINES.search(text) or _TOP.search(text)
    if found is None:
        return text, {}
    groups = found.groupdict()
    rest = re.sub(r"\s+", " ", f"{text[: found.start()]} {text[found.end() :]}").strip(" ,")
    rest = re.sub(r"(?i)\b(read|show|view|print|display|cat|me)\s+(?:the\s+)?(?:of|in|from)\s+", r"\1 ", rest)
    if groups.get("count"):
        return rest, {"start_line": 1, "line_count": max(int(groups["count"]), 1)}
    has_end = groups["last"] is not None or "on" not in found[0].split()[-1:] + found[0].split()[-2:-1]
    return rest, _span(
        groups["first"], groups["last"] or (groups["first"] if has_end and "from" not in found[0] else None)
    )


def _take_colon(word: str) -> tuple[str, dict[str, int]]:
    found = _COLON.search(word)
    if found is None or is_url(word):
        return word, {}
    return word[: found.start()], _span(found["first"], found["last"] or found["first"])


def _span(first: str, last: str | None) -> dict[str, int]:
    start = max(int(first), 1)
    return {"start_line": start} if last is None else {"start_line": start, "line_count": max(int(last) - start + 1, 1)}


def _reading(path: str, lines: dict[str, int], strength: float) -> Phrase:
    return Phrase("read", {"path": path, **lines}, strength)


def _listing(path: str, strength: float = STRONG) -> Phrase:
    return Phrase("list", {"path": path}, strength)


def read_listing(masked: Masked, text: str) -> Phrase | None:
    """Return the directory that a text wants to see."""
    whole = without_ending(text)
    if _HERE.match(whole):
        return _listing(".") if len(whole) > 4 or whole.lower() in ("ls", "list") else None
    found = _WHAT.match(whole)
    if found is not None:
        return _what_is_in(masked, found)
    found = _LIST.match(whole)
    return None if found is None or found["path"] is None else _list_of(masked, found)


def _list_of(masked: Masked, found: re.Match[str]) -> Phrase | None:
    lists = found["verb"].lower() in ("list", "ls", "dir")
    path = path_of(masked, found["path"])
    if path is not None:
        return _listing(path) if lists or (_is_marked(found) and not looks_like_file(path)) else None
    if not re.match(r"[\w.-]+\Z", found["path"]) or found["path"].lower() in _PRONOUNS:
        return None
    if _is_marked(found):
        return _listing(bare(found["path"]))
    return _listing(bare(found["path"]), WEAK) if lists and found["article"] is None else None


def _is_marked(found: re.Match[str]) -> bool:
    return bool(found["thing"] or found["folder"])


def _what_is_in(masked: Masked, found: re.Match[str]) -> Phrase | None:
    word = found["path"]
    path = path_of(masked, word)
    if path is not None:
        return _reading(path, {}, STRONG) if looks_like_file(path) and not found["folder"] else _listing(path)
    if not re.match(r"[\w.-]+\Z", word) or word.lower() in _PRONOUNS:
        return None
    if found["mark"]:
        return _reading(bare(word), {}, STRONG)
    if found["folder"]:
        return _listing(bare(word))
    return None if found["article"] or word[:1].isupper() else _listing(bare(word), WEAK)
