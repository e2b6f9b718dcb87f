"""Words as values of the type that a schema asks for."""

import json
import re
from typing import Any, cast

from dragoman.assistant.models.guide.schema import Parameter, choices
from dragoman.assistant.models.guide.words import split_words, vocabulary
from dragoman.assistant.models.guide.zone import find_zone

_YES = vocabulary("yes y true on sure ok okay 1 enabled")
_NO = vocabulary("no n false off 0 disabled never")
_NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    )
}
_CLOCK = re.compile(
    r"(?<![\w:])(?P<hour>[01]?\d|2[0-3])(?::(?P<minute>[0-5]\d))?\s*(?P<half>am|pm)\b|(?<![\w:])(?P<full>(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)(?![\w:])|\b(?P<name>noon|midnight)\b",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<![\w-])\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w-])"
)


def read_value(text: str, parameter: Parameter) -> Any:
    """Return what a text means for a parameter, or None when it means nothing to it."""
    text = text.strip() if parameter.kind != "string" else text
    allowed = choices(parameter.schema)
    if allowed:
        return _choice(text, allowed)
    match parameter.kind:
        case "integer" | "number":
            return read_number(text, whole=parameter.kind == "integer")
        case "boolean":
            return _truth(text)
        case "array":
            return _list(text, parameter)
        case "object":
            return read_json(text, dict)
        case _:
            return _string(text, parameter)


def read_number(text: str, *, whole: bool) -> float | int | None:
    """Return the number that a text is."""
    plain = text.strip().lstrip("#").rstrip(".,;%").replace(",", "")
    if plain.lower() in _NUMBER_WORDS:
        return _NUMBER_WORDS[plain.lower()]
    if re.fullmatch(r"[+-]?\d{1,18}", plain, re.ASCII):
        return int(plain)
    if not whole and re.fullmatch(r"[+-]?\d{0,18}\.\d{1,18}", plain, re.ASCII):
        return float(plain)
    return None


def read_json(text: str, kind: type) -> Any:
    """Return the JSON value of that type that a text is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def read_clock(text: str) -> tuple[str, str] | None:
    """Return the first time of day in a text: as written, and as HH:MM."""
    found = _CLOCK.search(text)
    if found is None:
        return None
    if found["name"]:
        return found[0], "12:00" if found["name"].lower() == "noon" else "00:00"
    if found["full"]:
        return found[0], found["full"].zfill(5)
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    return found[0], f"{hour:02}:{found['minute'] or '00'}"


def read_date(text: str) -> str | None:
    """Return the first date in a text, as it stands."""
    found = _DATE.search(text)
    return None if found is None else found[0]


def is_zone(parameter: Parameter) -> bool:
    """Tell whether a parameter is a time zone."""
    name = parameter.name.lower().replace("_", "").replace("-", "")
    return parameter.kind == "string" and ("timezone" in name or name in ("tz", "zone"))


def is_about(parameter: Parameter, *names: str) -> bool:
    """Tell whether one of these words is in a parameter's name."""
    return not set(split_words(parameter.name)).isdisjoint(names)


def _choice(text: str, allowed: list[Any]) -> Any:
    plain = _folded(text)
    return next((choice for choice in allowed if _folded(str(choice)) == plain), None)


def _folded(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text.strip().strip(".,;!?").lower())


def _truth(text: str) -> bool | None:
    plain = text.strip().strip(".,;!").lower()
    if plain in _YES:
        return True
    return False if plain in _NO else None


def _list(text: str, parameter: Parameter) -> list[Any] | None:
    parsed = read_json(text, list)
    if parsed is not None:
        return cast("list[Any]", parsed)
    given = parameter.schema.get("items")
    items = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    kind = items.get("type", "string")
    if kind not in ("string", "integer", "number"):
        return None
    one = Parameter(parameter.name, items, required=True, kind=kind, description="")
    pieces = [piece.strip() for piece in re.split(r"\s*[,;\n]\s*(?:and\s+)?|\s+and\s+", text)]
    values = [read_value(piece, one) for piece in pieces if piece]
    return None if not values or None in values else values


def _string(text: str, parameter: Parameter) -> str | None:
    if is_zone(parameter):
        return find_zone(text.strip().strip(".,!?"))
    if parameter.schema.get("format") in ("date", "date-time"):
        date = read_date(text)
        return date if date is not None and (len(date) > 10) == (parameter.schema["format"] == "date-time") else None
    return text
