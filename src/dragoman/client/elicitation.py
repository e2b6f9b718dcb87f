"""Elicitation: an agent asks a person for values by a form, or to open a page.

The function that answers shows the agent and its reason, and lets the person decline. A page is only opened after the
person has seen its whole address and agreed; the input there does not reach us. A form must not ask for secrets.
"""

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import InvalidParams
from dragoman.protocol import v1

MAX_PATTERN_CHARS = 200
MAX_MATCHED_CHARS = 2000
"""A pattern comes from the agent, and some take for ever: only short ones that cannot are tried, and on short texts."""

_log = logging.getLogger("dragoman.client")


class Elicitation(msgspec.Struct, frozen=True):
    """A question: a form has a `schema`, a page a `url`."""

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


class Reply(msgspec.Struct, frozen=True):
    """A person's answer; made by `accept`, `decline` and `cancel`."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] | None = None


Elicit = Callable[[Elicitation], Reply | Awaitable[Reply]]
"""Asks a person."""


def accept(content: Mapping[str, Any] | None = None) -> Reply:
    """Answer with a form that was filled in, or agree to open a page."""
    return Reply("accept", content)


def decline() -> Reply:
    """Say no."""
    return Reply("decline")


def cancel() -> Reply:
    """Leave the question unanswered."""
    return Reply("cancel")


def answer_with(elicit: Elicit) -> Callable[[v1.CreateElicitationRequest], Awaitable[v1.CreateElicitationResponse]]:
    """Return the handler of `elicitation/create` that asks a function.

    A form that does not fit is not sent: the question is cancelled then, and what is wrong with it is logged.
    """

    async def answer(params: v1.CreateElicitationRequest) -> v1.CreateElicitationResponse:
        question = _read(params)
        reply = elicit(question)
        if inspect.isawaitable(reply):
            reply = await reply
        return _respond(question, reply)

    return answer


def find_problems(schema: v1.ElicitationSchema, content: Mapping[str, Any]) -> list[str]:
    """Return the mistakes in a form that was filled in; none if it fits."""
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
            raise InvalidParams("params.mode", f"the mode {params.tag!r} is not known here", expected="form or url")


def _respond(question: Elicitation, reply: Reply) -> v1.CreateElicitationResponse:
    if reply.action == "decline":
        return v1.ElicitationDeclineAction()
    if reply.action != "accept":
        return v1.ElicitationCancelAction()
    if question.schema is None:
        return v1.ElicitationAcceptAction()
    content = dict(reply.content or {})
    problems = find_problems(question.schema, content)
    if problems:
        _log.error("the answer to %r was not sent, because it does not fit: %s", question.message, "; ".join(problems))
        return v1.ElicitationCancelAction()
    return v1.ElicitationAcceptAction(content=content)


def _problem(schema: v1.ElicitationPropertySchema, value: Any) -> str:
    match schema:
        case v1.StringPropertySchema():
            return _string_problem(schema, value) if isinstance(value, str) else "has to be a text"
        case v1.BooleanPropertySchema():
            return "" if isinstance(value, bool) else "has to be true or false"
        case v1.IntegerPropertySchema():
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return _range_problem(schema, value) if is_whole else "has to be a whole number"
        case v1.NumberPropertySchema():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0
            return _range_problem(schema, value) if is_number else "has to be a number"
        case v1.MultiSelectPropertySchema():
            return _choices_problem(schema, value)
        case _:
            return ""


def _string_problem(schema: v1.StringPropertySchema, value: str) -> str:
    allowed = schema.enum or [option.const for option in schema.one_of or ()]
    if allowed and value not in allowed:
        return f"has to be one of {', '.join(allowed)}"
    if schema.min_length is not None and len(value) < schema.min_length:
        return f"has to have at least {schema.min_length} characters"
    if schema.max_length is not None and len(value) > schema.max_length:
        return f"may have at most {schema.max_length} characters"
    if schema.format is not None and not _FORMATS.get(schema.format, lambda _: True)(value):
        return f"has to be in the format {schema.format}"
    if schema.pattern is not None and not _may_match(schema.pattern, value):
        return f"has to match {schema.pattern}"
    return ""


def _range_problem(schema: v1.IntegerPropertySchema | v1.NumberPropertySchema, value: float) -> str:
    if schema.minimum is not None and value < schema.minimum:
        return f"has to be at least {schema.minimum:g}"
    if schema.maximum is not None and value > schema.maximum:
        return f"may be at most {schema.maximum:g}"
    return ""


def _choices_problem(schema: v1.MultiSelectPropertySchema, value: Any) -> str:
    if not isinstance(value, (list, tuple)):
        return "has to be a list"
    chosen = list(cast("list[Any]", value))
    allowed = _choices(schema.items)
    if allowed is not None and any(each not in allowed for each in chosen):
        return f"may only have {', '.join(allowed)}"
    if len(set(map(str, chosen))) < len(chosen):
        return "has something twice"
    if schema.min_items is not None and len(chosen) < schema.min_items:
        return f"has to have at least {schema.min_items} of them"
    if schema.max_items is not None and len(chosen) > schema.max_items:
        return f"may have at most {schema.max_items} of them"
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
    """Whether a text matches, or it cannot be told: agents check it again."""
    if len(pattern) > MAX_PATTERN_CHARS or len(value) > MAX_MATCHED_CHARS or _is_slow(pattern):
        return True
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _is_slow(pattern: str) -> bool:
    """Whether a pattern repeats groups, refers back, or repeats more than twice: such may try for ever."""
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
