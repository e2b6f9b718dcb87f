"""A secret, which is revealed only where it is used."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from dragoman.assistant.profile.problem import MissingVariable

PREFIX = "env://"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Secret:
    """A secret as the file has it: the text itself, or `env://NAME`, which is looked up on every use.

    Nothing shows it: not `repr`, not `str`, and no encoder knows the type.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if text.startswith(PREFIX) and not _VARIABLE.fullmatch(text.removeprefix(PREFIX)):
            raise ValueError(f"expected the name of an environment variable after {PREFIX}")
        self._text = text

    @property
    def variable(self) -> str | None:
        """The environment variable that it comes from, if it does."""
        return self._text.removeprefix(PREFIX) if self._text.startswith(PREFIX) else None

    def reveal(self, environment: Mapping[str, str] = os.environ) -> str:
        """Return the secret itself; raises MissingVariable."""
        if self.variable is None:
            return self._text
        found = environment.get(self.variable)
        if not found:
            raise MissingVariable(self.variable)
        return found

    def __repr__(self) -> str:
        return f"Secret({PREFIX}{self.variable})" if self.variable else "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def find_secrets(value: Any) -> Iterator[Secret]:
    """Yield every secret inside a struct, wherever it sits."""
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from find_secrets(getattr(value, field))
    elif isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from find_secrets(each)
    elif isinstance(value, list | tuple):
        for each in cast("list[Any]", value):
            yield from find_secrets(each)
