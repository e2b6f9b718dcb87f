"""Methods of public classes that the parts of the client call on each other, and users do not."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__dragoman_internal__"


def internal(function: F) -> F:
    """Mark a method as no part of the public API: the reference leaves it out, and it has no sync twin."""
    setattr(function, _MARK, True)
    return function


def is_internal(value: object) -> bool:
    """Tell whether a method is marked so."""
    return getattr(value, _MARK, False) is True
