"""What a type expects, in words."""

from msgspec import inspect

from dragoman.protocol.misfit import one_of


def expectation(info: inspect.Type) -> str:
    """Return the words for a type, such as `an integer from 0 to 65535`."""
    match info:
        case inspect.UnionType(types=types):
            return _join(list(dict.fromkeys(expectation(each) for each in types)))
        case inspect.IntType(ge=low, le=high):
            return "an integer" + _range(low, high)
        case inspect.StrType(min_length=shortest) if shortest:
            return "a string that is not empty"
        case inspect.LiteralType(values=values):
            return one_of(str(value) for value in values)
        case _:
            return _PLAIN.get(type(info), "an object")


_PLAIN: dict[type[inspect.Type], str] = {
    inspect.NoneType: "null",
    inspect.BoolType: "a boolean",
    inspect.FloatType: "a number",
    inspect.StrType: "a string",
    inspect.ListType: "an array",
    inspect.AnyType: "any value",
}


def _range(low: int | None, high: int | None) -> str:
    if low is None:
        return ""
    return f" of {low} or more" if high is None else f" from {low} to {high}"


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
