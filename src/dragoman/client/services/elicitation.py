"""Elicitation: an agent asks the user to fill in a form or to open a page.

The handler shows which agent asks and why, and lets the user decline. It may open a page only after the user has seen
the whole URL and agreed. Input on that page does not reach the client. A form must not ask for secrets.
"""

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1

MAX_PATTERN_CHARS = 200
MAX_MATCHED_CHARS = 2000
"""Limits for patterns from the agent, because some never finish. Only short, safe ones are tried, on short texts."""

_log = logging.getLogger("dragoman.client")


class Elicitation(msgspec.Struct, frozen=True):
    """A question to the user. A form has a `schema`, and a page has a `url`."""

    message: str
    schema: v1.ElicitationSchema | None = None
    url: str | None = None
    elicitation_id: str | None = None
    session_id: str | None = None
    tool_call_id: str | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """The initial values of a form."""
        properties = self.schema.properties if self.schema else {}
        values = {name: getattr(each, "default", None) for name, each in properties.items()}
        return {name: value for name, value in values.items() if value is not None}


class ElicitationResponse(msgspec.Struct, frozen=True):
    """The user's answer, made by `accept`, `decline` or `cancel`."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] | None = None


ElicitationHandler = Callable[[Elicitation], ElicitationResponse | Awaitable[ElicitationResponse]]
"""Asks the user."""


def accept(content: Mapping[str, Any] | None = None) -> ElicitationResponse:
    """Return the answer with the values of a form, or the agreement to open a page."""
    return ElicitationResponse("accept", content)


def decline() -> ElicitationResponse:
    """Return the answer of a user who declines."""
    return ElicitationResponse("decline")


def cancel() -> ElicitationResponse:
    """Return the answer of a user who dismissed the question."""
    return ElicitationResponse("cancel")


def answer_with(
    elicit: ElicitationHandler,
) -> Callable[[v1.CreateElicitationRequest], Awaitable[v1.CreateElicitationResponse]]:
    """Return a handler of `elicitation/create` that calls a function.

    If the values do not fit the schema, the answer is `cancel` and the problems are logged.
    """

    async def answer(params: v1.CreateElicitationRequest) -> v1.CreateElicitationResponse:
        question = _read(params)
        reply = elicit(question)
        if inspect.isawaitable(reply):
            reply = await reply
        return _respond(question, reply)

    return answer


def find_problems(schema: v1.ElicitationSchema, content: Mapping[str, Any]) -> list[str]:
    """Return the problems of a form's values, or an empty list if they fit the schema."""
    missing = [f"{name} is missing" for name in schema.required or () if name not in content]
    unknown = [f"{name} was not asked for" for name in content if name not in schema.properties]
    wrong = [
        f"{name} {problem}"
        for name, each in schema.properties.items()
        if name in content and (problem := _problem(each, content[name]))
    ]
    return missing + unknown + wrong


def _read(params: v1.CreateElicitationRequest) -> Elicitation:
    match params:
        case v1.FormElicitationForSession():
            return Elicitation(
                params.message,
                params.requested_schema,
                session_id=params.session_id,
                tool_call_id=params.tool_call_id,
            )
        case v1.FormElicitationForRequest():
            return Elicitation(params.message, params.requested_schema)
        case v1.UrlElicitationForSession():
            return Elicitation(
                params.message,
                url=params.url,
                elicitation_id=params.elicitation_id,
                session_id=params.session_id,
                tool_call_id=params.tool_call_id,
            )
        case v1.UrlElicitationForRequest():
            return Elicitation(params.message, url=params.url, elicitation_id=params.elicitation_id)
        case _:
            raise InvalidParamsError("params.mode", f"the mode {params.tag!r} is unknown", expected="form or url")


def _respond(question: Elicitation, reply: ElicitationResponse) -> v1.CreateElicitationResponse:
    if reply.action == "decline":
        return v1.ElicitationDeclineAction()
    if reply.action != "accept":
        return v1.ElicitationCancelAction()
    if question.schema is None:
        return v1.ElicitationAcceptAction()
    content = dict(reply.content or {})
    problems = find_problems(question.schema, content)
    if problems:
        _log.error("the answer to %r was not sent, because it is not valid: %s", question.message, "; ".join(problems))
        return v1.ElicitationCancelAction()
    return v1.ElicitationAcceptAction(content=content)


def _problem(schema: v1.ElicitationPropertySchema, value: Any) -> str:
    """Return the problem of one value, or an empty text if it fits its schema."""
    match schema:
        # A bool is an int in Python, but not a number in JSON. NaN and infinity are not JSON either.
        case v1.StringPropertySchema():
            return _string_problem(schema, value) if isinstance(value, str) else "must be text"
        case v1.BooleanPropertySchema():
            return "" if isinstance(value, bool) else "must be true or false"
        case v1.IntegerPropertySchema():
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return _range_problem(schema, value) if is_whole else "must be a whole number"
        case v1.NumberPropertySchema():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0
            return _range_problem(schema, value) if is_number else "must be a number"
        case v1.MultiSelectPropertySchema():
            return _choices_problem(schema, value)
        case _:
            return ""


def _string_problem(schema: v1.StringPropertySchema, value: str) -> str:
    allowed = schema.enum or [option.const for option in schema.one_of or ()]
    if allowed and value not in allowed:
        return f"must be one of {', '.join(allowed)}"
    if schema.min_length is not None and len(value) < schema.min_length:
        return f"must have at least {schema.min_length} characters"
    if schema.max_length is not None and len(value) > schema.max_length:
        return f"may have at most {schema.max_length} characters"
    if schema.format is not None and not _FORMATS.get(schema.format, lambda _: True)(value):
        return f"must be in the format {schema.format}"
    if schema.pattern is not None and not _may_match(schema.pattern, value):
        return f"must match {schema.pattern}"
    return ""


def _range_problem(schema: v1.IntegerPropertySchema | v1.NumberPropertySchema, value: float) -> str:
    if schema.minimum is not None and value < schema.minimum:
        return f"must be at least {schema.minimum:g}"
    if schema.maximum is not None and value > schema.maximum:
        return f"may be at most {schema.maximum:g}"
    return ""


def _choices_problem(schema: v1.MultiSelectPropertySchema, value: Any) -> str:
    if not isinstance(value, (list, tuple)):
        return "must be a list"
    chosen = list(cast("list[Any]", value))
    allowed = _choices(schema.items)
    if allowed is not None and any(each not in allowed for each in chosen):
        return f"may only have {', '.join(allowed)}"
    if len(set(map(str, chosen))) < len(chosen):
        return "must not contain duplicates"
    if schema.min_items is not None and len(chosen) < schema.min_items:
        return f"must have at least {schema.min_items} items"
    if schema.max_items is not None and len(chosen) > schema.max_items:
        return f"may have at most {schema.max_items} items"
    return ""


def _choices(items: v1.MultiSelectItems) -> list[str] | None:
    match items:
        case v1.StringMultiSelectItems():
            return items.enum
        case v1.TitledMultiSelectItems():
            return [option.const for option in items.any_of]
        case _:
            return None


def _may_match(pattern: str, value: str) -> bool:
    """Return whether a text matches. Also True for a pattern that is not tried, because the agent checks it again."""
    if len(pattern) > MAX_PATTERN_CHARS or len(value) > MAX_MATCHED_CHARS or _is_slow(pattern):
        return True
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _is_slow(pattern: str) -> bool:
    """Return whether a pattern repeats groups, has back references or repeats more than twice: it may never finish."""
    return bool(re.search(r"\)[*+{?]|\\[1-9]|\(\?P=", pattern)) or len(re.findall(r"[*+{]", pattern)) > 2


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_date_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value.upper()


def _is_uri(value: str) -> bool:
    try:
        return bool(urlsplit(value).scheme)
    except ValueError:
        return False


_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "email": lambda value: bool(re.fullmatch(r"[^@\s]+@[^@\s]+", value)),
    "uri": _is_uri,
    "date": _is_date,
    "date-time": _is_date_time,
}
