"""Small changes to messages, for breaches to be made of."""

from collections.abc import Callable
from typing import Any

from tests.check.mutants.peer import Object

INTERNAL_ERROR = -32603
INVENTED = "dragoman-invented-"
"""Begins what the checker makes up, so that nobody knows it."""


def put(**fields: Any) -> Callable[[Object], None]:
    """Change fields of the params."""
    return lambda message: message["params"].update(fields)


def give(**fields: Any) -> Callable[[Object], None]:
    """Change fields of the result."""
    return lambda message: message["result"].update(fields)


def drop(part: str, name: str) -> Callable[[Object], None]:
    """Leave a field of the params, the result or the error out."""

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
    """Send something behind it."""
    return lambda message: [message, *more]


def twice(message: Object) -> list[Object]:
    """Send it two times."""
    return [message, message]


def nothing(message: Object) -> list[Object]:
    """Send nothing instead."""
    return []
