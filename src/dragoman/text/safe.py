r"""Foreign text made safe to show: on a terminal, in a log, in a title, in a question that a person answers.

An agent, a model, a server or a file name may hold characters that a terminal obeys (control characters and the escape
sequences that begin with them), that turn the characters around them (bidi overrides, isolates and marks), or that
cannot be seen (zero-width and other format characters, fillers, tags). The table of them is here and nowhere else in
Python; `bridge/web/js/text/safe.js` has the same one for the page, and a test compares the two.

There are two renderings:

- **Text for reading** (`clean_text`, `TextCleaner` for a stream): prose over several lines. Line ends and tabs stay,
  escape sequences and hidden characters are left out. The joiners of emoji, Persian or Hindi stay.
- **One line** (`visible`, `one_line`): names, titles, commands, paths. A person has to see what is there, so that what
  cannot be seen is written out: `\u202e`, `\x1b`, `\n`. `one_line` also folds white space and cuts; `visible` folds
  nothing, because in a command or a path each space counts.
"""

import re

MAX_HELD_CHARS = 4096
"""Of an escape sequence that has not ended: a longer one is no sequence, and is dropped so far."""

# Patterns are texts, which `re` compiles at their first use: an agent that starts has none of them to show yet.

_FORMAT = (
    r"\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff"
    r"\ufff9-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""DEL and C1, soft hyphen, marks, overrides and isolates, zero-width characters, half letters, codes that are no
characters, tags."""

_BLANK = (
    r"\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180d\u180f\u2000-\u200a\u202f\u205f\u3000\u3164\uffa0"
    r"\U00013430-\U0001343f"
)
"""Spaces other than the plain one, and fillers: they look like a space, or like nothing."""

_JOINERS = r"\u200c\u200d"
_VARIATIONS = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Joiners and variation selectors belong to their neighbours, as in Persian words and emoji; never to ASCII."""

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
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*"  # OSC, DCS and the like;
    r"(?:\x07|\x1b\\|\x9c|(?=\x1b[^\\])|(?=\n))"  # the end of a line ends them too, or the rest would be lost
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~]"
)
_UNFINISHED = (
    r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c\n]*\x1b?|[ -/]*)"
    r"|\x9b[0-?]*[ -/]*|[\x9d\x90\x98\x9e\x9f][^\x07\x1b\x9c\n]*\x1b?|\r)\Z"
)
_INTRODUCER = r"\x1b[\[\]PX^_]?|[\x9b\x9d\x90\x98\x9e\x9f]"
"""The rest of a sequence that never ended."""

_SHORT_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


class TextCleaner:
    """Takes a text for reading in pieces; a sequence may begin in one and end in the next."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the part that is fit to be shown so far; the beginning of a sequence waits for its end."""
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
    r"""Return a text without escape sequences, and with `\n` for `\r\n`; every other character stays."""
    return re.sub(_INTRODUCER, "", re.sub(_SEQUENCE, "", text)).replace("\r\n", "\n")


def visible(text: str, *, lines: bool = False) -> str:
    """Return a text in one line, with invisible characters written out; with `lines`, line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    if lines:
        return re.sub(_UNSEEN, lambda found: found[0] if found[0] in "\n\t" else _escape(found[0]), text)
    return re.sub(_UNSEEN, lambda found: _escape(found[0]), text)


def one_line(text: str, max_chars: int | None = None) -> str:
    """Return a text in one line with white space folded, `visible`, and cut with an ellipsis if it is too long."""
    if max_chars is None:
        return visible(re.sub(_SPACE, " ", text).strip(" "))
    # Cut at first as well, with room for folded characters: a hostile text may have millions of characters.
    start = text[: 4 * max_chars]
    line = visible(re.sub(_SPACE, " ", start).strip(" "))
    return line if len(line) <= max_chars and len(start) == len(text) else f"{line[: max_chars - 1]}…"


def is_visible(text: str) -> bool:
    """Tell whether every character of a text can be seen as it is, and there is one."""
    return bool(text) and visible(text) == text


def escape_json(document: str) -> str:
    r"""Return a JSON document of the same value, with invisible characters written as `\u202e`, as JSON may."""
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
