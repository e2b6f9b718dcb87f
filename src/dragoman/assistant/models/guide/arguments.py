"""Arguments from words: the values that a request has for the parameters of a tool.

Values are taken in this order: a JSON object; `name: value`, `name=value` and `--name value`; values of a known form
(choices, addresses, dates, times, time zones, `owner/repo`, paths, numbers); quoted pieces; and for the one text that
is still missing, the end of the sentence. Each value is taken out of the words, so that none is used twice.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec

from dragoman.assistant.models.guide.prompt import TOKEN, Words, is_quoted
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.search.thesaurus import STOP_WORDS, all_words, split_name, stem

_PATHS = re.compile(r"path|file|dir|folder|source|destination|\bsrc|\bdest", re.IGNORECASE)
_PATH = rf"(?:{TOKEN}|(?![a-z]+://)(?:[^\s,;]*/[^\s,;]*|\.\.?|[^\s,;/]+\.[a-z]\w{{0,9}})(?=[\s,;?!]|\Z))"
_FORMS = (
    (re.compile(r"ur[il]\b|link|address", re.IGNORECASE), r"[a-z][a-z0-9+.-]*://[^\s,;]*[^\s,;.?!)]"),
    (re.compile(r"e-?mail|recipient|^to$", re.IGNORECASE), r"[^\s@<>,]+@[^\s@<>,]+\.[a-z]{2,}"),
    (re.compile(r"date|\bday", re.IGNORECASE), r"\d{4}-\d\d-\d\d"),
    (re.compile(r"\btime\b", re.IGNORECASE), r"\d\d?:\d\d"),
    (_PATHS, _PATH),
)
"""The forms of values, by words in the names and formats of their parameters."""
_TIME_ZONE = re.compile(r"time ?zone|\btz\b", re.IGNORECASE)
_TEXTS = re.compile(r"text|message|query|note|body|content|topic|title|question|prompt|sql|subject", re.IGNORECASE)
"""The names of parameters whose values are whole phrases; other values end at the next preposition."""
_NUMBER = re.compile(r"(?<![\w.:/\ue000-])-?\d+(?:\.\d+)?(?![\w:/-])")
_JSON = re.compile(r"\{.*\}\s*\Z", re.DOTALL)
_PREPOSITIONS = "in|of|for|to|from|at|on|with|by|into"
_END = re.compile(
    r".*?(?:(?:^|\s)(?:about|titled|named|called|saying|that(?: says)?|for|in|of|on|to(?: say)?|into|from)|:)"
    r"\s+(?P<value>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_SUFFIXES = ("name", "names", "id", "number", "type")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a tool, as far as words can give it a value."""

    name: str
    kind: str
    """Its type in JSON; the first that is not null."""
    choices: tuple[Any, ...] = ()
    format: str = ""
    description: str = ""
    item_kind: str = "string"
    is_required: bool = False

    def convert(self, text: str) -> Any:
        """Return a text as a value; None when it cannot be one."""
        if self.choices:
            return next((one for one in self.choices if str(one).lower() == text.strip().lower()), None)
        if self.kind != "array":
            return _convert(text, self.kind)
        values = [_convert(one, self.item_kind) for one in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", text)]
        return None if None in values else values


def read_parameters(tool: ToolDefinition) -> dict[str, Parameter]:
    """Return the parameters of a tool by their names; a schema may hold anything."""
    required = tool.parameters.get("required")
    needed = cast("list[object]", required) if isinstance(required, list) else []
    parameters: dict[str, Parameter] = {}
    for name, schema in read_object(tool.parameters.get("properties")).items():
        about = _first_alternative(read_object(schema))
        items = _first_alternative(read_object(about.get("items")))
        choices = about.get("enum", [about["const"]] if "const" in about else [])
        parameters[name] = Parameter(
            name,
            _kind(about),
            tuple(one for one in cast("list[object]", choices) if one is not None) if isinstance(choices, list) else (),
            str(about.get("format", "")),
            " ".join(str(read_object(schema).get("description") or "").split()),
            _kind(items),
            name in needed,
        )
    return parameters


def read_object(value: object) -> dict[str, Any]:
    """Return a value that should be a JSON object; an empty one when it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class ArgumentReader:
    """Takes the arguments of one tool out of the words of a request; `rest` are the words that are left."""

    def __init__(self, tool: ToolDefinition, words: Words, given: Mapping[str, Any]) -> None:
        self.parameters = read_parameters(tool)
        self.values: dict[str, Any] = dict(given)
        self.rest = words.text
        self._words = words

    @property
    def missing(self) -> list[Parameter]:
        """The required parameters that have no value."""
        return [one for one in self.parameters.values() if one.is_required and one.name not in self.values]

    def read(self, *, is_named: bool) -> "ArgumentReader":
        """Take all values; behind the name of its tool, a request holds nothing but values."""
        self._take_json()
        for name in sorted(self.parameters, key=len, reverse=True):
            self._take_named(self.parameters[name])
        self._take_repository()
        for one in self._open():
            self._take_form(one)
        self._take_numbers()
        self._take_quoted()
        self._take_end(is_named=is_named)
        return self

    def _open(self) -> list[Parameter]:
        """Return the parameters without a value, the required ones first."""
        others = [one for one in self.parameters.values() if not one.is_required and one.name not in self.values]
        return self.missing + others

    def _take_json(self) -> None:
        found = _JSON.search(self.rest)
        if found is None:
            return
        try:
            given = read_object(json.loads(self._words.value(found[0])))
        except ValueError:
            return
        self.values |= {name: value for name, value in given.items() if name in self.parameters}
        self._cut(found)

    def _take_named(self, one: Parameter) -> None:
        if one.name in self.values:
            return
        parts = [re.escape(part) for part in split_name(one.name).split()]
        name = r"[\s_-]?".join(parts)
        if len(parts) > 1 and parts[-1].lower() in _SUFFIXES:
            name = f"(?:{name}|{parts[-2]})"  # "table users" for `table_name`
        patterns = [
            rf"(?:--{name}[\s=]+|(?<!\w){name}\s*=\s*)({TOKEN}|[^\s,;]+)",
            rf"(?<!\w){name}\s*:\s*({TOKEN}|.+?)(?=\s*(?:[,;]\s*(?:and\s+)?[\w -]+?\s*[:=]|,\s|;|\Z))",
        ]
        if len(one.name) > 2:
            joined = r"\s+(?:(?:of|is|named|called|type)\s+)?"
            patterns.append(rf"(?<!\w){name}{joined}(?!(?:{_PREPOSITIONS}|and|is|as)\b)#?({TOKEN}|[^\s,;]+)")
        for pattern in patterns:
            found = re.search(pattern, self.rest, re.IGNORECASE | re.DOTALL)
            if found and self._put(one, found[1], found):
                return

    def _take_repository(self) -> None:
        """Take `owner/repo`, and for a tool on a directory the path behind "in" or "of"."""
        found = re.search(r"([\w.-]+)/([\w.-]+)", self.rest)
        if found and {"owner", "repo"} <= {one.name for one in self.missing}:
            self.values |= {"owner": found[1], "repo": found[2].rstrip(".")}
            self._cut(found)
        for one in self._open():
            found = re.search(rf"\b(?:in|of|from|at)\s+({_PATH})", self.rest, re.IGNORECASE)
            if found and re.search(r"repo|dir|folder|root", one.name, re.IGNORECASE) and one.kind == "string":
                self._put(one, found[1], found)

    def _take_form(self, one: Parameter) -> None:
        about = f"{split_name(one.name)} {one.format}"
        if one.choices:
            choices = "|".join(re.escape(str(choice)) for choice in one.choices)
            if found := re.search(rf"\b(?:{choices})\b", self.rest, re.IGNORECASE):
                self._put(one, found[0], found)
        elif one.kind == "boolean":
            if {stem(word) for word in all_words(about)} <= {stem(word) for word in all_words(self.rest)}:
                self.values[one.name] = True
        elif one.kind == "string" and _TIME_ZONE.search(about):
            self._take_time_zone(one)
        elif one.kind in ("string", "array"):
            form = next((form for words, form in _FORMS if words.search(about)), None)
            if form:
                self._take_matches(one, form)

    def _take_time_zone(self, one: Parameter) -> None:
        for found in re.finditer(r"[A-Z][\w/+-]*(?: [A-Z]\w+)*", self.rest):
            zone = _time_zones().get(found[0].lower().replace(" ", "_"))
            if zone is not None:
                self._put(one, zone, found)
                return

    def _take_matches(self, one: Parameter, form: str) -> None:
        """Take the first piece of a form, or for a list all of them."""
        found = list(re.finditer(form, self.rest, re.IGNORECASE))
        if found and one.kind == "array":
            self.values[one.name] = [self._words.value(match[0]) for match in found]
            for match in reversed(found):
                self._cut(match)
        elif found:
            self._put(one, found[0][0], found[0])

    def _take_numbers(self) -> None:
        """Take numbers in their order for the required parameters, or the only one for the only other parameter."""
        wanted = [one for one in self.missing if one.kind in ("integer", "number")]
        others = [one for one in self._open() if one.kind in ("integer", "number")]
        for one in wanted or (others if len(others) == len(_NUMBER.findall(self.rest)) == 1 else []):
            if found := _NUMBER.search(self.rest):
                self._put(one, found[0], found)

    def _take_quoted(self) -> None:
        for one in self.missing:
            self._take_matches(one, TOKEN)

    def _take_end(self, *, is_named: bool) -> None:
        """Take the end of the sentence for the one text that is missing."""
        rest = re.sub(r"\s+", " ", self.rest).strip(" ,:;")
        missing = self.missing
        if len(missing) != 1 or missing[0].kind != "string" or not rest or not _may_be_words(missing[0].name, rest):
            return
        found = _END.fullmatch(rest)
        value = found["value"] if found else ""
        if is_named:
            value = re.sub(rf"\A(?:to say|about|that|{_PREPOSITIONS})\s+", "", rest, flags=re.IGNORECASE)
        if not _TEXTS.search(missing[0].name):
            value = re.sub(rf"\A(?:the|an?)\s+|\s+(?:{_PREPOSITIONS})(?:\s.*|\Z)", "", value, flags=re.IGNORECASE)
        if value and value.lower() not in STOP_WORDS and self._set(missing[0], value):
            self.rest = rest.replace(value, " ")

    def _put(self, one: Parameter, piece: str, found: re.Match[str]) -> bool:
        is_put = self._set(one, piece)
        if is_put:
            self._cut(found)
        return is_put

    def _set(self, one: Parameter, piece: str) -> bool:
        text = self._words.value(piece)
        value = one.convert(text if is_quoted(piece) else text.rstrip("?!"))
        if value is not None:
            self.values[one.name] = value
        return value is not None

    def _cut(self, found: re.Match[str]) -> None:
        self.rest = f"{self.rest[: found.start()]} {self.rest[found.end() :]}"


def _convert(text: str, kind: str) -> Any:
    if kind == "string":
        return text
    if kind == "integer":
        return int(text) if re.fullmatch(r"-?\d{1,15}", text.strip()) else None
    if kind == "number":
        return json.loads(text) if re.fullmatch(r"-?(?:0|[1-9]\d{0,15})(?:\.\d+)?", text.strip()) else None
    return _TRUTHS.get(text.strip().lower()) if kind == "boolean" else None


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema, the first that is not null; a schema without one is for text."""
    kinds = schema.get("type", "object" if "properties" in schema or "$ref" in schema else "string")
    if not isinstance(kinds, list):
        return str(kinds)
    return str(next((kind for kind in cast("list[object]", kinds) if kind != "null"), "null"))


def _first_alternative(schema: dict[str, Any]) -> dict[str, Any]:
    options = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(options, list):
        return schema
    objects = [read_object(one) for one in cast("list[object]", options)]
    return next((one for one in objects if one and one.get("type") != "null"), schema)


def _may_be_words(name: str, rest: str) -> bool:
    """Tell whether a value may be plain words: not where values have a form; a path may be one word."""
    about = split_name(name)
    if _PATHS.search(about):
        return " " not in rest
    return not _TIME_ZONE.search(about) and not any(words.search(about) for words, _ in _FORMS)


@cache
def _time_zones() -> dict[str, str]:
    """Return the time zones that this system knows, by their names and by the last parts of those: cities."""
    from zoneinfo import available_timezones

    zones = sorted(available_timezones(), key=lambda zone: (zone.count("/") != 1, zone), reverse=True)
    cities = {zone.rsplit("/", 1)[-1].lower(): zone for zone in zones if "/" in zone and not zone.startswith("Etc/")}
    return {**cities, **{zone.lower(): zone for zone in zones}}
