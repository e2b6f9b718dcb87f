r"""Makes foreign text safe to show on a terminal, in a log, in a title and in a permission request.

An agent, a model, a server or a file name may contain dangerous characters. A terminal obeys control characters and
the escape sequences that begin with them. Bidi overrides, isolates and marks change the order of the characters around
them. Zero-width characters, other format characters, fillers and tags are invisible. The table of these characters is
here and nowhere else in Python. `bridge/web/js/text/safe.js` has the same table for the page, and a test compares them.

There are two renderings:

- **Text for reading** (`clean_text`, `TextCleaner` for a stream): prose over several lines. Line ends and tabs stay.
  Escape sequences and hidden characters are removed. The joiners of emoji, Persian or Hindi stay.
- **One line** (`visible`, `one_line`): names, titles, commands, paths. The user must see every character, so invisible
  ones are escaped: `\u202e`, `\x1b`, `\n`. `one_line` also folds white space and shortens. `visible` folds nothing,
  because each space counts in a command or a path.
"""

import re

MAX_HELD_CHARS = 4096
"""The longest unfinished escape sequence that is held back. A longer one is not a sequence, and is dropped so far."""

# Patterns are strings, which `re` compiles at first use, because an agent that starts has no text to show yet.

_FORMAT = (
    r"\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff"
    r"\ufff9-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""DEL and C1, soft hyphen, marks, overrides and isolates, zero-width characters, surrogates, noncharacters, tags."""

_BLANK = (
    r"\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180d\u180f\u2000-\u200a\u202f\u205f\u3000\u3164\uffa0"
    r"\U00013430-\U0001343f"
)
"""Fillers, and all spaces except the plain one. They look like a space or like nothing."""

_JOINERS = r"\u200c\u200d"
_VARIATIONS = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Joiners and variation selectors belong to their neighbours, as in Persian words and emoji, but never to ASCII."""

_HIDDEN = rf"\x00-\x1f{_FORMAT}{_BLANK}"
_LETTER = rf"[^\x00-\x7f{_HIDDEN}{_JOINERS}{_VARIATIONS}]"
_UNSEEN = (
    rf"[{_HIDDEN}]"
    rf"|(?<!{_LETTER})[{_VARIATIONS}]"
    rf"|(?<![^\x00-\x7f{_HIDDEN}{_JOINERS}])[{_JOINERS}]"
    rf"|[{_JOINERS}](?!{_LETTER})"
)
_SPACE = r"[\t-\r \x1c-\x1f\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
_DROPPED = rf"[\x00-\x08\x0b-\x1f{_FORMAT}]"
_JSON_UNSAFE = rf"[{_FORMAT}]"

_SEQUENCE = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*"  # OSC, DCS and similar
    r"(?:\x07|\x1b\\|\x9c|(?=\x1b[^\\])|(?=\n))"  # a line end also ends them, or the rest of the text would be lost
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~]"
)
_UNFINISHED = (
    r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c\n]*\x1b?|[ -/]*)"
    r"|\x9b[0-?]*[ -/]*|[\x9d\x90\x98\x9e\x9f][^\x07\x1b\x9c\n]*\x1b?|\r)\Z"
)
_INTRODUCER = r"\x1b[\[\]PX^_]?|[\x9b\x9d\x90\x98\x9e\x9f]"
"""The beginning of a sequence that never ended."""

_SHORT_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


class TextCleaner:
    """Cleans a text that arrives in pieces. An escape sequence may begin in one piece and end in the next."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text that can be shown so far. Hold back a sequence that has not ended."""
        text = re.sub(_SEQUENCE, "", self._held + text).replace("\r\n", "\n")
        held = re.search(_UNFINISHED, text)
        self._held = ""
        if held is not None:
            text = text[: held.start()]
            self._held = held[0] if len(held[0]) <= MAX_HELD_CHARS else held[0][:2]
        return _drop_hidden(text)


def clean_text(text: str) -> str:
    """Return a whole text for reading: characters that can be seen, tabs and line ends."""
    return _drop_hidden(drop_sequences(text))


def drop_sequences(text: str) -> str:
    r"""Return a text without escape sequences and with `\n` for `\r\n`. Keep every other character."""
    return re.sub(_INTRODUCER, "", re.sub(_SEQUENCE, "", text)).replace("\r\n", "\n")


def visible(text: str, *, lines: bool = False) -> str:
    """Return a text on one line with invisible characters escaped. With `lines`, keep line ends and tabs."""
    if text.isascii() and text.isprintable():
        return text
    if lines:
        return re.sub(_UNSEEN, lambda found: found[0] if found[0] in "\n\t" else _escape(found[0]), text)
    return re.sub(_UNSEEN, lambda found: _escape(found[0]), text)


def one_line(text: str, max_chars: int | None = None) -> str:
    """Return a text on one line: white space folded, `visible`, and shortened with an ellipsis if too long."""
    if max_chars is None:
        return visible(re.sub(_SPACE, " ", text).strip(" "))
    # Cut first, with room for folded white space, because a hostile text may have millions of characters.
    start = text[: 4 * max_chars]
    line = visible(re.sub(_SPACE, " ", start).strip(" "))
    return line if len(line) <= max_chars and len(start) == len(text) else f"{line[: max_chars - 1]}…"


def is_visible(text: str) -> bool:
    """Return whether a text is not empty and all its characters are visible."""
    return bool(text) and visible(text) == text


def escape_json(document: str) -> str:
    r"""Return an equal JSON document with invisible characters escaped as `\u202e`, as JSON allows."""
    return re.sub(_JSON_UNSAFE, lambda found: _escape_for_json(found[0]), document)


def _drop_hidden(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_DROPPED, "", text.replace("\u2028", "\n").replace("\u2029", "\n"))


def _escape(character: str) -> str:
    code = ord(character)
    if short := _SHORT_ESCAPES.get(character):
        return short
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_for_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
