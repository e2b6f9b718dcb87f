"""What the agent wants to know from a person: asked field by field, and declined by Ctrl-C."""

from collections.abc import Callable
from typing import Any

from dragoman.client import Elicitation, Reply, accept, decline
from dragoman.client.elicitation import find_problems
from dragoman.protocol import v1
from dragoman.text import one_line, visible

Ask = Callable[[str], str]
Tell = Callable[[str], None]


def fill_in(elicitation: Elicitation, ask: Ask, tell: Tell) -> Reply:
    """Show the question and return what the person answers."""
    tell(f"The agent asks: {one_line(elicitation.message)}")
    try:
        if elicitation.schema is None:
            tell(f"It wants you to open this page: {visible(elicitation.url or '')}")
            return accept() if ask("Open it yourself, then write yes [yes/no] ").strip().lower() in _YES else decline()
        tell("Enter takes what stands in brackets, Ctrl-C declines.")
        return accept(_ask_fields(elicitation.schema, ask, tell))
    except (KeyboardInterrupt, EOFError):
        tell("declined")
        return decline()


_YES = ("y", "yes", "true", "1")


def _ask_fields(schema: v1.ElicitationSchema, ask: Ask, tell: Tell) -> dict[str, Any]:
    content: dict[str, Any] = {}
    required = schema.required or ()
    for name, field in schema.properties.items():
        single = v1.ElicitationSchema(properties={name: field}, required=[name] if name in required else [])
        while True:
            value = _read(field, ask(_label(name, field, is_required=name in required)))
            given = {} if value is None else {name: value}
            problems = find_problems(single, given)
            if not problems:
                content |= given
                break
            tell("; ".join(map(visible, problems)))
    return content


def _label(name: str, field: v1.ElicitationPropertySchema, *, is_required: bool) -> str:
    title = one_line(getattr(field, "title", None) or name)
    described = one_line(getattr(field, "description", None) or "")
    default = getattr(field, "default", None)
    match field:
        case v1.StringPropertySchema():
            choices = "|".join(field.enum or [option.const for option in field.one_of or ()])
        case v1.BooleanPropertySchema():
            choices = "yes|no"
        case v1.MultiSelectPropertySchema():
            choices = "with commas between"
        case _:
            choices = ""
    details = ", ".join(filter(None, (described, one_line(choices), "" if is_required else "may be left out")))
    shown = f" [{one_line(str(default))}]" if default is not None else ""
    return f"{title}{f' ({details})' if details else ''}{shown}: "


def _read(field: v1.ElicitationPropertySchema, text: str) -> Any:
    text = text.strip()
    if not text:
        return getattr(field, "default", None)
    match field:
        case v1.BooleanPropertySchema():
            return text.lower() in _YES if text.lower() in (*_YES, "n", "no", "false", "0") else text
        case v1.IntegerPropertySchema():
            return _number(int, text)
        case v1.NumberPropertySchema():
            return _number(float, text)
        case v1.MultiSelectPropertySchema():
            return [each.strip() for each in text.split(",") if each.strip()]
        case _:
            return text


def _number(kind: Callable[[str], float], text: str) -> float | str:
    try:
        return kind(text)
    except ValueError:
        return text
