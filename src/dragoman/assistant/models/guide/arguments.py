"""A tool's arguments, filled from the words of a request and the tool's schema.

Evidence is taken from the surest to the least sure, and each word is used once: JSON, `key: value` pairs, things that
look like what they are (addresses, dates, numbers, zones, paths), quoted pieces, phrases after a preposition, and at
last the rest of the sentence for the one string that is still missing. Optional parameters need evidence of their own.
"""

import re
from collections.abc import Sequence
from typing import Any

from dragoman.assistant.models.guide.evidence import (
    AFFINITY,
    COUNT_NAMES,
    ENUM_WORD,
    FREE_NAMES,
    PLACE_NAMES,
    Blank,
    spellings,
)
from dragoman.assistant.models.guide.literal import TOKEN, Masked
from dragoman.assistant.models.guide.path import looks_like_path
from dragoman.assistant.models.guide.prompt import without_courtesy, without_ending
from dragoman.assistant.models.guide.schema import Parameter, choices, misfit, parameters
from dragoman.assistant.models.guide.sighting import (
    NEW_NAMES,
    OLD_NAMES,
    PATH_NAMES,
    PATHS_NAMES,
    Sighting,
    find_amounts,
    find_count,
    find_move,
    find_path,
    find_paths,
    find_zones,
    hints,
    is_amount_of,
)
from dragoman.assistant.models.guide.trade import own_name
from dragoman.assistant.models.guide.value import (
    is_about,
    is_zone,
    read_clock,
    read_date,
    read_json,
    read_number,
    read_value,
)
from dragoman.assistant.models.guide.words import GENERIC, STOP, mean, meanings, split_words
from dragoman.assistant.models.model import ToolDefinition

SQL = re.compile(
    r"\b(?:select\b.+\bfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|create\s+table|drop\s+table|pragma|with\s+\w+\s+as)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(rf"{TOKEN}|[^\s,]+")
_NUMBER = re.compile(r"(?<![\w.:/#-])[+-]?\d{1,18}(?:\.\d{1,18})?(?![\w:/-]|\.\d)|(?<=#)\d{1,18}\b", re.ASCII)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s,<>]+")
_EMAIL = re.compile(r"[^\s@,;:]{1,64}@[^\s@,;:]{1,200}\.[A-Za-z]{2,20}\b")
_REVISION = re.compile(r"(?<![\w./-])(?:HEAD(?:[~^]\d*)*|(?=[a-f]*\d)[0-9a-f]{7,40})(?![\w/-])")
_SWITCHED = re.compile(r"(?:include|with|show)(?:[_-]|(?=[A-Z]))(\w+)\Z")
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
        self.spare = ""
        """The parameter that got what was left of the sentence, which is the least sure."""
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
        self._take_move()
        for parameter in self._open():
            self._take_kind(parameter)
        self._take_zones([one for one in self._open() if is_zone(one)])
        numbers = [one for one in self._open() if one.kind in ("integer", "number")]
        self._take_amounts(numbers)
        self._take_counts([one for one in numbers if one.name not in self.arguments])
        self._take_numbers([one for one in numbers if one.required and one.name not in self.arguments])

    def _take_kind(self, parameter: Parameter) -> None:
        if choices(parameter.schema):
            self._take_choice(parameter, choices(parameter.schema))
        elif parameter.kind == "boolean":
            self._take_flag(parameter)
        elif parameter.kind == "string" and not is_zone(parameter):
            self._take_looks(parameter)
            if parameter.name not in self.arguments:
                self._take_choice(parameter, hints(parameter))
        elif parameter.kind == "array" and is_about(parameter, *PATHS_NAMES):
            self._take_paths(parameter)

    def _take_choice(self, parameter: Parameter, known: Sequence[Any]) -> None:
        for choice in known:
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
        switched = _SWITCHED.match(parameter.name)
        if found is None and switched is not None:
            noun = re.escape(" ".join(split_words(switched[1])))
            found = re.search(rf"\b(?:(without)|with|including)\s(?:an?\s|the\s)?{noun}s?\b", self._blank.text)
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
        elif is_about(parameter, "revision", "commit", "sha", "ref", "target"):
            self._take_match(parameter, _REVISION.search(text))
        elif is_about(parameter, *PATH_NAMES) or (self._moves() and is_about(parameter, *OLD_NAMES, *NEW_NAMES)):
            self._take_sighted(parameter, find_path(text, parameter))

    def _take_match(self, parameter: Parameter, found: re.Match[str] | None) -> None:
        if found is not None:
            value = found[0].rstrip(".,;!?)")
            self._take(parameter, value, (found.start(), found.start() + len(value)))

    def _take_clock(self, parameter: Parameter) -> None:
        found = read_clock(self._blank.text)
        if found is not None:
            start = self._blank.text.index(found[0])
            self._take(parameter, found[1], (start, start + len(found[0])))

    def _take_sighted(self, parameter: Parameter, seen: Sighting | None) -> bool:
        return seen is not None and self._take(parameter, self._value(seen.value, parameter), seen.span)

    def _take_paths(self, parameter: Parameter) -> None:
        seen = find_paths(self._blank.text)
        if seen and self._take(parameter, [one.value for one in seen]):
            for one in seen:
                self._blank.use(*one.span)

    def _moves(self) -> bool:
        return bool(meanings(own_name(self.tool)) & {"file", "directory"})

    def _take_move(self) -> None:
        """`a.txt to b.txt`, for a tool that takes both ends."""
        texts = [one for one in self._open() if one.kind == "string" and not is_zone(one)]
        old = next((one for one in texts if is_about(one, *OLD_NAMES)), None)
        new = next((one for one in texts if one is not old and is_about(one, *NEW_NAMES)), None)
        seen = find_move(self._blank.text) if old is not None and new is not None and self._moves() else None
        if seen is not None and old is not None and new is not None:
            self._take_sighted(old, seen[0])
            self._take_sighted(new, seen[1])

    def _take_repository(self) -> None:
        by_name = {one.name.lower(): one for one in self._open()}
        owner, repo = by_name.get("owner"), by_name.get("repo") or by_name.get("repository")
        found = _REPO.search(self._blank.text) if owner is not None and repo is not None else None
        if found is not None and owner is not None and repo is not None:
            self._take(owner, found[1])
            self._take(repo, found[2].rstrip("."), found.span())

    def _take_zones(self, zones: list[Parameter]) -> None:
        places = list(find_zones(self._blank.text, self._step)) if zones else []
        for parameter in zones:
            wanted = (
                ("from", "")
                if is_about(parameter, "source", "from")
                else ("to", "in")
                if is_about(parameter, "target", "to")
                else ()
            )
            ordered = sorted(places, key=lambda place: 0 if place.word in wanted else 1) if wanted else places
            if not ordered or (not parameter.required and not wanted and ordered[0].word not in ("in", "for", "at")):
                continue
            place = ordered[0]
            places.remove(place)
            self._take(parameter, place.value, place.span)

    def _take_amounts(self, wanted: list[Parameter]) -> None:
        """`3 seconds`, `6 steps`: numbers before the name or the unit of a parameter."""
        for parameter in wanted:
            seen = [one for one in find_amounts(self._blank.text) if is_amount_of(one, parameter)]
            self._take_sighted(parameter, seen[0] if seen else None)

    def _take_counts(self, wanted: list[Parameter]) -> None:
        """`last 5 commits`, `10 results` and `top 3` are limits."""
        counts = [one for one in wanted if is_about(one, *COUNT_NAMES) and not is_about(one, "issue", "pull", "id")]
        if counts:
            self._take_sighted(counts[0], find_count(self._blank.text))

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
                if one.kind in ("string", "array") and not _is_closed(one) and is_about(one, *names)
            ]
            wanted = [
                one
                for one in wanted
                if one.required
                or is_about(one, *PLACE_NAMES)
                or mark[1].lower() in ("titled", "named", "called", "by", "since", "until", "from")
            ]
            if words and wanted and not _only_about(words, self.tool):
                end = self._blank.text.index(words, mark.end()) + len(words)
                words = _without_name(words, wanted[0])
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
            taken = self._take(wanted[0], self._value(_without_name(rest, wanted[0]), wanted[0]))
            self.spare = wanted[0].name if taken else ""


def _may_be(rest: str, parameter: Parameter) -> bool:
    """Tell whether the rest of a sentence can be meant for a parameter that names something."""
    if parameter.schema.get("format") in ("uri", "url", "email") or is_about(parameter, "url", "uri", "email"):
        return False
    if _is_closed(parameter):
        return False
    words = _without_name(rest, parameter)
    return " " not in words or not is_about(
        parameter, *PATHS_NAMES, "id", "owner", "branch", "revision", "commit", "tag", "target"
    )


def _is_closed(parameter: Parameter) -> bool:
    """Tell whether a parameter takes one of few values, which are looked for by themselves."""
    return bool(choices(parameter.schema)) or len(hints(parameter)) > 1


def _without_name(words: str, parameter: Parameter) -> str:
    """Return what is left of `branch dev` for a branch, and of `commit abc1234` for anything that is one word."""
    names = "|".join(map(re.escape, spellings(parameter.name)))
    left = re.sub(rf"\A(?:{names})\s+(?=\S)", "", words, flags=re.IGNORECASE)
    first, _, last = left.rpartition(" ")
    known = {*split_words(parameter.name), "branch", "commit", "revision", "tag"}
    named = is_about(parameter, "name", "revision", "target", "base", "id", "branch", "commit", "tag")
    return last if named and first and set(split_words(first)) <= known | STOP else left


_ANNOUNCED = re.compile(r"\s*([^:]{1,80}):\s+(\S.*)\Z", re.DOTALL)
_SAYS = re.compile(r"\A(?:to|and)\s+(?:say|print|output|return|send)\s+|\Aafter\s+me\b\s*", re.IGNORECASE)


def _rest(text: str, tool: ToolDefinition) -> str:
    """Return what is left of a sentence when the words that chose the tool are gone from its front."""
    announced = _ANNOUNCED.match(text)
    if announced is not None and not _rest(announced[1], tool):
        return announced[2].strip(" ,")
    about = meanings(f"{tool.name} {' '.join(one.name for one in parameters(tool))}") | GENERIC
    words = re.sub(r"\s+", " ", text).strip(" ,:").split(" ")
    while words and (_SAYS.match(" ".join(words)) or _is_idle(words[0], about)):
        said = _SAYS.match(" ".join(words))
        words = " ".join(words)[said.end() :].split(" ") if said else words[1:]
    while words and words[-1].lower() in STOP:
        words.pop()
    return " ".join(words).strip(" ,:")


def _is_idle(word: str, about: frozenset[str]) -> bool:
    plain = word.lower().strip(".,:;!?'\u2019")
    parts = split_words(plain)
    return plain in STOP or not plain or (bool(parts) and all(mean(part) in about or part in STOP for part in parts))


def _only_about(words: str, tool: ToolDefinition) -> bool:
    return all(_is_idle(word, meanings(own_name(tool))) for word in words.split())
