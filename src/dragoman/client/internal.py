"""A mark for methods of public classes that only other parts of the client call."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__dragoman_internal__"


def internal(function: F) -> F:
    """Mark a method as internal. The API reference omits it, and it has no synchronous version."""
    setattr(function, _MARK, True)
    return function
