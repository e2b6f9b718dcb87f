"""A tool's arguments, filled from the words of a request and the tool's schema.

Evidence is taken from the surest to the least sure, and each word is used once: JSON, `key: value` pairs, things that
look like what they are (addresses, dates, numbers, zones, paths), quoted pieces, phrases after a preposition, and at
last the rest of the sentence for the one string that is still missing. Optional parameters need evidence of their own.
"""

import re
from collections.abc import Iterable
from typing import Any

from dragoman.agent.models.guide.evidence import (
    AFFINITY,
    COUNT_NAMES,
    ENUM_WORD,
    FREE_NAMES,
    PLACE_NAMES,
    Blank,
    spellings,
)
from dragoman.agent.models.guide.literal import TOKEN, Masked
from dragoman.agent.models.guide.path import bare, looks_like_path
from dragoman.agent.models.guide.prompt import without_courtesy, without_ending
from dragoman.agent.models.guide.schema import Parameter, choices, misfit, parameters
from dragoman.agent.models.guide.trade import own_name
from dragoman.agent.models.guide.value import (
    is_about,
    is_zone,
    read_clock,
    read_date,
    read_json,
    read_number,
    read_value,
)
from dragoman.agent.models.guide.words import GENERIC, STOP, mean, meanings, split_words
from dragoman.agent.models.guide.zone import find_zone
from dragoman.agent.models.model import ToolDefinition

SQL = re.compile(
    r"\b(?:select\b.+\bfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|create\s+table|drop\s+table|pragma|with\s+\w+\s+as)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(rf"{TOKEN}|[^\s,]+")
_NUMBER = re.compile(r"(?<![\w.:/#-])[+-]?\d{1,18}(?:\.\d{1,18})?(?![\w:/-]|\.\d)|(?<=#)\d{1,18}\b", re.ASCII)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s,<>]+")
_EMAIL = re.compile(r"[^\s@,;:]{1,64}@[^\s@,;:]{1,200}\.[A-Za-z]{2,20}\b")
_REPO = re.compile(r"(?<![\w/.~-])([A-Za-z0-9][\w.-]{0,60})/([A-Za-z0-9][\w.-]{0,100})(?![\w/])")
_PHRASE = re.compile(
    r"\b(in|at|near|for|of|about|on|from|to|with|by|named|called|titled|into|as|saying|since|until|that|regarding)\s+",
    re.IGNORECASE,
)
_SAYING = ("that", "saying", "titled", "with", "about")
_ARTICLE = re.compile(r"\A(?:the|a|an|my)\s+", re.IGNORECASE)
_CAPITALISED = re.compile(r"(?<=\s)[A-Z][\w'\u2019-]*(?:\s+(?:de\s+)?[A-Z][\w'\u2019-]*){0,3}")


class Filling:
    """The arguments of one tool, as they are found."""

    def __init__(self, tool: ToolDefinition, step: Masked, given: dict[str, Any]) -> None:
        self.tool = tool
        self.known = parameters(tool)
        self.arguments: dict[str, Any] = {}
        self._given = given
        self._step = step
        self._blank = Blank(without_ending(without_courtesy(step.text)))

    def fill(self) -> None:
        """Find what can be found; what is missing stays so."""
        for name, value in self._given.items():
            self.arguments[name] = value
        for find in (self._from_json, self._from_pairs, self._from_sql, self._from_kinds, self._from_quotes):
            find()
        self._from_phrases()
        self._from_rest()

    def missing(self) -> list[Parameter]:
        """Return the required parameters without a value."""
        return [one for one in self.known if one.required and one.name not in self.arguments]

    def _open(self) -> list[Parameter]:
        return [one for one in self.known if one.name not in self.arguments]

    def _take(self, parameter: Parameter, value: Any, span: tuple[int, int] | None = None) -> bool:
        if value is None or misfit(value, parameter.schema, self.tool.parameters) is not None:
            return False
        self.arguments[parameter.name] = value
        if span is not None:
            self._blank.use(*span)
        return True

    def _value(self, word: str, parameter: Parameter) -> Any:
        return read_value(self._step.restore(word), parameter)

    def _from_json(self) -> None:
        text = self._step.restore(f"{self._blank.text} ")
        start, end = text.find("{"), text.rfind("}")
        found = read_json(text[start : end + 1], dict) if 0 <= start < end else None
        if found is None and len(self._step.literals) == 1:
            found = read_json(self._step.literals[0].value, dict)
        if not found or not set(found) <= {one.name for one in self.known}:
            return
        if all(self._take(one, found[one.name]) for one in self.known if one.name in found):
            self._blank.use(0, len(self._blank.text))

    def _from_pairs(self) -> None:
        """`key: value`, `key=value`, `--key value`, and `key value` where the value cannot be mistaken."""
        marks = self._keys()
        for index, (parameter, start, end, sign) in enumerate(marks):
            if parameter.name in self.arguments:
                continue
            limit = marks[index + 1][1] if index + 1 < len(marks) else len(self._blank.text)
            long = re.sub(r"[\s,]+(?:and|with)?\s*\Z", "", self._blank.text[end:limit])
            first = _WORD.match(self._blank.text, end)
            short = first[0] if first is not None else ""
            for value in (long, short) if sign == ":" else (short,):
                if value and self._take(parameter, self._value(value, parameter), (start, end + len(value))):
                    break

    def _keys(self) -> list[tuple[Parameter, int, int, str]]:
        text, found = self._blank.text, list[tuple[Parameter, int, int, str]]()
        for parameter in self._open():
            names = "|".join(map(re.escape, spellings(parameter.name)))
            if not names:
                continue
            for match in re.finditer(
                rf"(?<![\w])(--)?(?:{names})(?:\s*(=|:(?!//))\s*|\s+(?:is\s+|of\s+|to\s+)?)(?=\S)", text, re.IGNORECASE
            ):
                sign = match[2] or match[1] or ""
                word = _WORD.match(text, match.end())
                if sign or (word is not None and self._is_unmistakable(word[0], parameter)):
                    found.append((parameter, match.start(), match.end(), sign))
                    break
        return sorted(found, key=lambda key: key[1])

    def _is_unmistakable(self, word: str, parameter: Parameter) -> bool:
        if self._step.literal(word.rstrip(".,;:")) is not None:
            return True
        if parameter.kind in ("integer", "number"):
            return any(sign.isdigit() for sign in word)
        if choices(parameter.schema) or is_zone(parameter):
            return self._value(word, parameter) is not None
        return parameter.kind == "string" and (
            looks_like_path(word) or bool(re.match(r"[A-Z]+-?\d+\Z|[0-9a-f]{7,40}\Z", word))
        )

    def _from_sql(self) -> None:
        wanted = [one for one in self._open() if one.kind == "string" and is_about(one, "query", "sql", "statement")]
        found = SQL.search(self._blank.text) if wanted else None
        if found is not None:
            self._take(wanted[0], self._step.restore(found[0]), found.span())

    def _from_kinds(self) -> None:
        self._take_repository()
        for parameter in self._open():
            self._take_kind(parameter)
        self._take_zones([one for one in self._open() if is_zone(one)])
        self._take_counts()
        self._take_numbers([one for one in self._open() if one.required and one.kind in ("integer", "number")])

    def _take_kind(self, parameter: Parameter) -> None:
        if choices(parameter.schema):
            self._take_choice(parameter)
        elif parameter.kind == "boolean":
            self._take_flag(parameter)
        elif parameter.kind == "string" and not is_zone(parameter):
            self._take_looks(parameter)

    def _take_choice(self, parameter: Parameter) -> None:
        for choice in choices(parameter.schema):
            if not isinstance(choice, str) or not ENUM_WORD.match(choice):
                continue
            words = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", choice)))
            found = re.search(rf"(?<![\w]){words}(?![\w])", self._blank.text, re.IGNORECASE)
            if found is not None and (parameter.required or not self._names_tool(choice)):
                self._take(parameter, choice, found.span())
                return

    def _names_tool(self, word: str) -> bool:
        return mean(word.lower()) in meanings(own_name(self.tool))

    def _take_flag(self, parameter: Parameter) -> None:
        names = "|".join(re.escape(name) for name in spellings(parameter.name))
        found = re.search(
            rf"(\b(?:not|no|without|don't|non)[\s-]+)?\b(?:{names})(?:ly)?\b", self._blank.text, re.IGNORECASE
        )
        if names and found is not None and not self._names_tool(parameter.name):
            self._take(parameter, found[1] is None, found.span())

    def _take_looks(self, parameter: Parameter) -> None:
        text, form = self._blank.text, parameter.schema.get("format")
        if form in ("uri", "url") or is_about(parameter, "url", "uri", "link", "href"):
            self._take_match(parameter, _URL.search(text))
        elif form == "email" or is_about(parameter, "email", "recipient", "attendee", "to"):
            self._take_match(parameter, _EMAIL.search(text))
        elif form in ("date", "date-time") or is_about(
            parameter, "date", "day", "since", "until", "start", "end", "when", "due"
        ):
            date = read_date(text)
            if date is not None:
                start = text.index(date)
                self._take(parameter, read_value(date, parameter), (start, start + len(date)))
        elif is_about(parameter, "time", "at"):
            self._take_clock(parameter)
        elif is_about(parameter, "path", "file", "filename", "directory", "dir", "folder", "repo"):
            self._take_path(parameter)

    def _take_match(self, parameter: Parameter, found: re.Match[str] | None) -> None:
        if found is not None:
            value = found[0].rstrip(".,;!?)")
            self._take(parameter, value, (found.start(), found.start() + len(value)))

    def _take_clock(self, parameter: Parameter) -> None:
        found = read_clock(self._blank.text)
        if found is not None:
            start = self._blank.text.index(found[0])
            self._take(parameter, found[1], (start, start + len(found[0])))

    def _take_path(self, parameter: Parameter) -> None:
        for word in _WORD.finditer(self._blank.text):
            if looks_like_path(word[0]) and not _URL.match(word[0]) and not re.match(r"\d+(?:\.\d+)+", word[0]):
                self._take(parameter, bare(word[0]), word.span())
                return

    def _take_repository(self) -> None:
        by_name = {one.name.lower(): one for one in self._open()}
        owner, repo = by_name.get("owner"), by_name.get("repo") or by_name.get("repository")
        found = _REPO.search(self._blank.text) if owner is not None and repo is not None else None
        if found is not None and owner is not None and repo is not None:
            self._take(owner, found[1])
            self._take(repo, found[2].rstrip("."), found.span())

    def _take_zones(self, zones: list[Parameter]) -> None:
        places = list(self._places()) if zones else []
        for parameter in zones:
            wanted = (
                ("from", "")
                if is_about(parameter, "source", "from")
                else ("to", "in")
                if is_about(parameter, "target", "to")
                else ()
            )
            ordered = sorted(places, key=lambda place: 0 if place[0] in wanted else 1) if wanted else places
            if not ordered or (not parameter.required and not wanted and ordered[0][0] not in ("in", "for", "at")):
                continue
            _, zone, span = ordered[0]
            places.remove(ordered[0])
            self._take(parameter, zone, span)

    def _places(self) -> Iterable[tuple[str, str, tuple[int, int]]]:
        """Yield the places in the text that have a time zone, with the preposition before each."""
        words = list(re.finditer(rf"{TOKEN}|[A-Za-z_/+-]+\d*", self._blank.text))
        index = 0
        while index < len(words):
            for length in (3, 2, 1):
                run = words[index : index + length]
                name = self._step.restore(" ".join(word[0] for word in run))
                zone = find_zone(name) if len(run) == length and (name.lower() not in STOP) else None
                if zone is not None:
                    before = words[index - 1][0].lower() if index else ""
                    yield (
                        before if before in ("in", "to", "from", "for", "at") else "",
                        zone,
                        (run[0].start(), run[-1].end()),
                    )
                    index += length - 1
                    break
            index += 1

    def _take_counts(self) -> None:
        """`last 5 commits`, `10 results` and `top 3` are limits."""
        counts = [
            one
            for one in self._open()
            if one.kind == "integer" and is_about(one, *COUNT_NAMES) and not is_about(one, "issue", "pull", "id")
        ]
        found = re.search(
            r"\b(?:last|latest|first|top|recent|newest|only)\s+(\d{1,6})\b|(?<![#\w.:/-])(\d{1,6})\s+(?=[a-z]{3,})",
            self._blank.text,
            re.IGNORECASE,
        )
        if counts and found is not None:
            self._take(counts[0], int(found[1] or found[2]), found.span())

    def _take_numbers(self, wanted: list[Parameter]) -> None:
        for parameter in wanted:
            for found in _NUMBER.finditer(self._blank.text):
                if self._take(parameter, read_number(found[0], whole=parameter.kind == "integer"), found.span()):
                    break

    def _from_quotes(self) -> None:
        tokens = list(re.finditer(TOKEN, self._blank.text))
        strings = [one for one in self._open() if one.kind == "string" and not choices(one.schema)]
        lists = [one for one in self._open() if one.kind == "array"]
        required = [one for one in strings if one.required]
        if len(tokens) > 1 and not required and lists:
            self._take(lists[0], [self._step.restore(token[0]) for token in tokens])
            return
        wanted = required or [one for one in lists if one.required] or self._likely(strings)
        for parameter, token in zip(self._ordered_by_phrase(wanted, tokens), tokens, strict=False):
            self._take(parameter, self._value(token[0], parameter), token.span())

    def _likely(self, optional: list[Parameter]) -> list[Parameter]:
        free = [one for one in optional if is_about(one, *FREE_NAMES)]
        return free[:1] or (optional if len(optional) == 1 else [])

    def _ordered_by_phrase(self, wanted: list[Parameter], tokens: list[re.Match[str]]) -> list[Parameter]:
        """Let the words before the quotes say which is which: `'a' to 'b'`, `titled 'x'`."""
        if len(wanted) < 2:
            return wanted
        left, ordered = list(wanted), list[Parameter]()
        for token in tokens:
            before = self._blank.text[: token.start()].split()[-1:]
            names = AFFINITY.get(before[0].lower(), ()) if before else ()
            chosen = next((one for one in left if is_about(one, *names)), None) if names else None
            chosen = chosen or next((one for one in left if is_about(one, *FREE_NAMES)), None) or next(iter(left), None)
            if chosen is not None:
                left.remove(chosen)
                ordered.append(chosen)
        return ordered

    def _from_phrases(self) -> None:
        """`in Paris`, `about login`, `titled Fix the door`."""
        text = self._blank.text
        marks = list(_PHRASE.finditer(text))
        for index, mark in enumerate(marks):
            end = marks[index + 1].start() if index + 1 < len(marks) else len(text)
            words = self._blank.text[mark.end() : end].strip(" ,")
            words = words if mark[1].lower() in _SAYING else _ARTICLE.sub("", words)
            names = AFFINITY.get(mark[1].lower(), ())
            wanted = [
                one
                for one in self._open()
                if one.kind in ("string", "array") and not choices(one.schema) and is_about(one, *names)
            ]
            wanted = [
                one
                for one in wanted
                if one.required
                or is_about(one, *PLACE_NAMES)
                or mark[1].lower() in ("titled", "named", "called", "by", "since", "until")
            ]
            if words and wanted and not _only_about(words, self.tool):
                end = self._blank.text.index(words, mark.end()) + len(words)
                names_it = rf"(?:{'|'.join(map(re.escape, spellings(wanted[0].name)))})\s+"
                words = re.sub(rf"\A{names_it}", "", words, flags=re.IGNORECASE)
                self._take(wanted[0], self._value(words, wanted[0]), (mark.start(), end))
        self._take_capitals([one for one in self.missing() if is_about(one, *PLACE_NAMES)])

    def _take_capitals(self, places: list[Parameter]) -> None:
        found = _CAPITALISED.search(self._blank.text) if places else None
        if found is not None:
            self._take(places[0], self._value(found[0], places[0]), found.span())

    def _from_rest(self) -> None:
        wanted = [one for one in self.missing() if one.kind in ("string", "array") and not choices(one.schema)]
        if len(wanted) > 1:
            wanted = [one for one in wanted if is_about(one, *FREE_NAMES)][:1]
        if not wanted and not any(one.required for one in self.known):
            wanted = [
                one for one in self._open() if one.kind == "string" and is_about(one, "query", "q", "search", "keyword")
            ][:1]
        rest = _rest(self._blank.text, self.tool) if wanted else ""
        if rest and _may_be(rest, wanted[0]):
            self._take(wanted[0], self._value(rest, wanted[0]))


def _may_be(rest: str, parameter: Parameter) -> bool:
    """Tell whether the rest of a sentence can be meant for a parameter that names something."""
    if parameter.schema.get("format") in ("uri", "url", "email") or is_about(parameter, "url", "uri", "email"):
        return False
    return " " not in rest or not is_about(
        parameter, "path", "file", "directory", "dir", "folder", "id", "repo", "owner"
    )


def _rest(text: str, tool: ToolDefinition) -> str:
    """Return what is left of a sentence when the words that chose the tool are gone from its front."""
    about = meanings(f"{tool.name} {' '.join(one.name for one in parameters(tool))}") | GENERIC
    words = re.sub(r"\s+", " ", text).strip(" ,:").split(" ")
    while words and _is_idle(words[0], about):
        words.pop(0)
    while words and words[-1].lower() in STOP:
        words.pop()
    return " ".join(words).strip(" ,:")


def _is_idle(word: str, about: frozenset[str]) -> bool:
    plain = word.lower().strip(".,:;!?'\u2019")
    parts = split_words(plain)
    return plain in STOP or not plain or (bool(parts) and all(mean(part) in about or part in STOP for part in parts))


def _only_about(words: str, tool: ToolDefinition) -> bool:
    return all(_is_idle(word, meanings(own_name(tool))) for word in words.split())
