"""Ordinary words for changing files: replace this by that, write so much into there."""

import re
from typing import Any

from dragoman.assistant.models.guide.literal import TOKEN, Masked, is_token
from dragoman.assistant.models.guide.path import bare, looks_like_file, path_of
from dragoman.assistant.models.guide.phrase import FAINT, STRONG, WEAK, Phrase, any_case
from dragoman.assistant.models.guide.prompt import without_ending

_SWAP = r"(?:replace|substitute|swap|change|rename|edit|update|correct|turn)"
_BETWEEN = r"(?:\s+(?:by|with|to|into|for)\s+|\s*(?:->|→|=>)\s*)"
_EDIT = any_case(
    rf"{_SWAP}\s+(?:the (?:text|word|string|line)\s+)?(?P<old>{TOKEN}|.+?){_BETWEEN}(?P<new>{TOKEN}|.+?)"
    rf"(?:\s+in(?:side)?\s+(?:the )?(?:file )?(?P<path>{TOKEN}|\S+))?\s*\Z"
)
_EDIT_FIRST = any_case(
    rf"(?:in|edit)\s+(?:the )?(?:file )?(?P<path>{TOKEN}|\S+?)[,:]?\s+{_SWAP}\s+"
    rf"(?P<old>{TOKEN}|.+?){_BETWEEN}(?P<new>{TOKEN}|.+?)\Z"
)
_CUT = any_case(
    rf"(?:remove|delete|cut)\s+(?:the (?:text|word|string|line)\s+)?(?P<old>{TOKEN})\s+"
    rf"(?:from|in)\s+(?:the )?(?:file )?(?P<path>{TOKEN}|\S+)\Z"
)
_REPLACES = any_case(r"\b(?:replace|substitute)\b")


def read_edit(masked: Masked, text: str) -> Phrase | None:
    """Return the replacement that a text asks for."""
    whole = without_ending(text)
    found = _EDIT_FIRST.match(whole) or _EDIT.match(whole) or _CUT.match(whole)
    if found is None:
        return None
    new = found.groupdict().get("new")
    roles: dict[str, Any] = {"old": masked.restore(found["old"]), "new": masked.restore(new) if new else ""}
    if not roles["old"]:
        return None
    marked = is_token(found["old"]) or (new is not None and is_token(new))
    replaces = _REPLACES.search(text) is not None
    if found["path"] is None:
        return Phrase("edit", roles, FAINT) if marked and replaces else None
    if not (marked or replaces) and " " in found["old"].strip():
        return None
    path = path_of(masked, found["path"]) or (bare(found["path"]) if marked or replaces else None)
    return None if path is None else Phrase("edit", {**roles, "path": path})


_FILE = (
    r"(?:a |an |the )?(?:new |empty )?(?:text |python |shell )?(?P<mark>file |script |note )?(?:called |named )?"
    rf"(?P<path>{TOKEN}|[^\s:,]+(?::[^\s:,]+)*)"
)
_GIVEN = (
    r"(?:\s*:\s*|\s*=\s*|,?\s+(?:with|containing|saying|that says|that contains)(?:\s+the)?"
    r"(?:\s+(?:contents?|text|line|lines|words?|code|following)(?:\s+(?:content|text|code|lines))?)?(?:\s*:\s*|\s+))"
)
_WRITE = r"(?:write|create|make|save|put|store|add)\s+"
_WRITE_TO = any_case(rf"{_WRITE}(?:(?:to|into|in)\s+)?{_FILE}{_GIVEN}(?P<content>.+)\Z")
_WRITE_INTO = any_case(rf"{_WRITE}(?P<content>{TOKEN}|.+?)\s+(?:to|into|in|as)\s+{_FILE}\s*\Z")
_WRITE_EMPTY = any_case(
    rf"(?P<verb>write|create|make)\s+(?P<empty>an empty |a new empty )?(?:(?:to|into)\s+)?{_FILE}\s*\Z"
)
_VAGUE = any_case(r"(?:a|an|some|the|my|this|that|it|tests?|documentation|docs|code)\b")
_MAKES = any_case(r"add\s")


def read_write(masked: Masked, text: str) -> Phrase | None:
    """Return the file that a text wants written."""
    found = _WRITE_TO.match(text)
    if found is not None and (path := _target(masked, found)) is not None:
        return Phrase("write", {"path": path, "content": _content(masked, found["content"])})
    if _MAKES.match(text):
        return None
    whole = without_ending(text)
    found = _WRITE_INTO.match(whole)
    if found is not None and (path := _target(masked, found)) is not None:
        if not is_token(found["content"]) and _VAGUE.match(found["content"]):
            return Phrase("write", {"path": path}, FAINT)
        is_plain = is_token(found["content"]) or looks_like_file(path)
        roles = {"path": path, "content": _content(masked, found["content"])}
        return Phrase("write", roles, STRONG if is_plain else WEAK)
    found = _WRITE_EMPTY.match(whole)
    if found is not None and (path := _target(masked, found)) is not None:
        content: dict[str, Any] = {"content": ""} if "empty" in whole.lower() else {}
        return Phrase("write", {"path": path, **content}, STRONG if content else WEAK)
    return None


def _target(masked: Masked, found: re.Match[str]) -> str | None:
    path = path_of(masked, found["path"])
    return path or (bare(found["path"]) if found["mark"] == "file " and found["path"].lower() != "with" else None)


def _content(masked: Masked, text: str) -> str:
    literal = masked.literal(without_ending(text))
    return literal.value if literal is not None else masked.restore(text)
