"""What a project's agent file would change, in sentences for the person who has to agree to it."""

from collections.abc import Iterator

from dragoman.agent.profile.limits import Limits
from dragoman.agent.profile.model import ModelSettings
from dragoman.agent.profile.permissions import Permissions
from dragoman.agent.profile.profile import Profile
from dragoman.agent.profile.secret import find_secrets
from dragoman.agent.yaml.words import printable

SHOWN_LETTERS = 500
"""Of the instructions: enough to judge them by, little enough to be read."""

_MODES = {
    "ask": "It would begin in the mode ask: reads run, everything else asks.",
    "code": "It would let edits inside the project run without asking (mode code).",
    "plan": "It would begin in the mode plan, which only reads.",
    "yolo": "It would let everything run without asking (mode yolo).",
}


def what_it_changes(profile: Profile, instead_of: Profile | None = None) -> list[str]:
    """Say all that would be different from the profile that counts otherwise; empty when nothing would be."""
    other = instead_of or Profile()
    if profile == other:
        return []
    return [
        *_model(profile.model, other.model),
        *(f"It reads the environment variable {variable}." for variable in _variables(profile)),
        *_instructions(profile.instructions, other.instructions),
        *_permissions(profile.permissions, other.permissions),
        *_limits(profile.limits, other.limits),
    ]


def _variables(profile: Profile) -> list[str]:
    return sorted({secret.variable for secret in find_secrets(profile) if secret.variable})


def _model(model: ModelSettings | None, other: ModelSettings | None) -> Iterator[str]:
    if model == other:
        return
    if model is None:
        yield "It would use the built-in model in place of yours."
        return
    place = f" at {printable(model.base_url)}, which would receive the conversation" if model.base_url else ""
    yield f"It would use the model {printable(model.name)}{place}."
    if model.api_key and not model.api_key.variable:
        yield "It brings an API key of its own."
    options = model.options
    for header in options.headers:
        yield f"It would send the header {printable(header)} with every request to the model."
    for name in ("temperature", "max_output_tokens", "thought_level"):
        value = getattr(options, name)
        if value is not None:
            yield f"It would set the model's {name} to {printable(str(value))}."


def _instructions(text: str, other: str) -> Iterator[str]:
    if text == other:
        return
    if not text.strip():
        yield "It would leave out your instructions."
        return
    more = len(text) - SHOWN_LETTERS
    rest = f" … and {more:,} characters more; read them in the file before you agree" if more > 0 else ""
    yield f"It would give the model these instructions: «{_lines(text[:SHOWN_LETTERS])}»{rest}"


def _lines(text: str) -> str:
    """Keep the lines, and nothing else that is not a letter: no colours, no text that runs backwards."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _permissions(permissions: Permissions, other: Permissions) -> Iterator[str]:
    if permissions.mode != other.mode:
        yield _MODES[permissions.mode]
    if permissions.allow_yolo != other.allow_yolo:
        let = "would let" if permissions.allow_yolo else "would no longer let"
        yield f"It {let} the mode yolo be chosen, in which everything runs without asking."
    if permissions.ask_outside_reads != other.ask_outside_reads:
        what = "asked for" if permissions.ask_outside_reads else "refused"
        yield f"Reading files outside the project would be {what}."
    if permissions.timeout_s != other.timeout_s:
        wait = "for ever" if permissions.timeout_s is None else f"{permissions.timeout_s:g} s"
        yield f"A question for permission would wait {wait} for an answer."


def _limits(limits: Limits, other: Limits) -> Iterator[str]:
    for name in limits.__struct_fields__:
        value, before = getattr(limits, name), getattr(other, name)
        if value != before:
            yield f"The limit {name} would be {_number(value)} instead of {_number(before)}."


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:,.15g}"
