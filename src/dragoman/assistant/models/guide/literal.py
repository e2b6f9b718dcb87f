"""What a person marked as literal: quotes, backticks and code fences, each masked by one token.

A masked text can be split and matched as words, because nothing inside a literal is seen; `restore` brings it back.
"""

import re

import msgspec

_OPEN, _CLOSE = "\ue000", "\ue001"
TOKEN = f"{_OPEN}\\d+{_CLOSE}"

# Each alternative ends at the first closing mark, so that a long prompt is read once. A quote inside a word
# (don't, print('hi')) opens nothing.
_MARKED = re.compile(
    r"(?P<fence>^[ \t]*```[^\n`]*\n(?P<block>.*?)^[ \t]*```[ \t]*$|```(?P<tight>[^`\n]+)```)"
    r"|`(?P<tick>[^`\n]+)`"
    r"|(?:(?<=[\s:=,;(])|(?<![^\s]))(?:\"(?P<double>[^\"\n]*)\"|'(?P<single>(?:[^'\n]|(?<=\w)'(?=\w))*)'"
    r"|“(?P<curly>[^”\n]*)”|«(?P<angle>[^»\n]*)»)(?=[\s.,;:!?)]|$)",
    re.MULTILINE | re.DOTALL,
)
_TOKEN = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_ONE_TOKEN = re.compile(f"\\s*{_OPEN}(\\d+){_CLOSE}\\s*\\Z")


class Literal(msgspec.Struct, frozen=True):
    """A piece as it stood in the prompt, and what is inside its marks."""

    raw: str
    value: str
    is_fence: bool = False


class Masked(msgspec.Struct, frozen=True):
    """A text with its literals taken out."""

    text: str
    literals: tuple[Literal, ...] = ()

    def part(self, text: str) -> "Masked":
        """Return another text over the same literals."""
        return Masked(text, self.literals)

    def restore(self, text: str) -> str:
        """Return the inside of a literal when the text is one, else the text with its literals as they stood."""
        one = _ONE_TOKEN.match(text)
        if one is not None:
            return self.literals[int(one[1])].value
        return _TOKEN.sub(lambda found: self.literals[int(found[1])].raw, text).strip()

    def literal(self, token: str) -> Literal | None:
        """Return the literal that a text consists of."""
        one = _ONE_TOKEN.match(token)
        return None if one is None else self.literals[int(one[1])]


def mask(text: str) -> Masked:
    """Take the literals out of a text."""
    literals: list[Literal] = []

    def keep(found: re.Match[str]) -> str:
        literals.append(_literal(found))
        return f"{_OPEN}{len(literals) - 1}{_CLOSE}"

    clean = text.replace(_OPEN, "").replace(_CLOSE, "").replace("\r\n", "\n")
    return Masked(_MARKED.sub(keep, clean), tuple(literals))


def _literal(found: re.Match[str]) -> Literal:
    if found["block"] is not None:
        return Literal(found[0], found["block"], is_fence=True)
    groups = ("tight", "tick", "double", "single", "curly", "angle")
    return Literal(found[0], next((found[name] for name in groups if found[name] is not None), ""))


def is_token(text: str) -> bool:
    """Tell whether a text is one literal and nothing else."""
    return _ONE_TOKEN.match(text) is not None
