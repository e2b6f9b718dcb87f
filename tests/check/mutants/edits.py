"""Small changes to messages, used by the breaches."""

from collections.abc import Callable
from typing import Any

from tests.check.mutants.peer import Object

INTERNAL_ERROR = -32603
INVENTED = "dragoman-invented-"
"""The prefix of the checker's invented names."""


def set_params(**fields: Any) -> Callable[[Object], None]:
    """Change fields of the params."""
    return lambda message: message["params"].update(fields)


def set_result(**fields: Any) -> Callable[[Object], None]:
    """Change fields of the result."""
    return lambda message: message["result"].update(fields)


def drop(part: str, name: str) -> Callable[[Object], None]:
    """Remove a field of the params, the result or the error."""

    def edit(message: Object) -> None:
        message[part] = {key: value for key, value in message[part].items() if key != name}

    return edit


def code(number: int) -> Callable[[Object], None]:
    """Change the code of the error."""
    return lambda message: message["error"].update(code=number)


def fail(number: int) -> Callable[[Object], Object]:
    """Answer with an error instead."""
    error = {"code": number, "message": "broken"}
    return lambda message: {"jsonrpc": "2.0", "id": message["id"], "error": error}


def then(*more: Object | bytes) -> Callable[[Object], list[Any]]:
    """Send more messages after it."""
    return lambda message: [message, *more]


def twice(message: Object) -> list[Object]:
    """Send it twice."""
    return [message, message]


def nothing(message: Object) -> list[Object]:
    """Send nothing instead."""
    return []
