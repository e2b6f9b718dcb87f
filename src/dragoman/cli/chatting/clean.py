"""Text from an agent, made fit for a terminal: nothing in it can move the cursor, set a title or hide a word."""

import re
import unicodedata

MAX_HELD_CHARS = 4096
"""Of an escape sequence that has not ended: a longer one is no sequence, and is dropped so far."""

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*"  # OSC, DCS and the like;
    r"(?:\x07|\x1b\\|\x9c|(?=\x1b[^\\])|(?=\n))"  # the end of a line ends them too, or the rest would be lost
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~]"
)
_UNFINISHED = re.compile(
    r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c\n]*\x1b?|[ -/]*)"
    r"|\x9b[0-?]*[ -/]*|[\x9d\x90\x98\x9e\x9f][^\x07\x1b\x9c\n]*\x1b?)\Z"
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_HIDDEN = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_ZERO_WIDTH = frozenset(("Mn", "Me", "Cf"))


class Cleaner:
    """Takes a text in pieces and leaves out what is for terminals and not for people."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what is fit to be shown so far; the beginning of a sequence waits for its end."""
        text = _SEQUENCE.sub("", (self._held + text).replace("\r\n", "\n"))
        held = _UNFINISHED.search(text)
        self._held = ""
        if held is not None:
            text = text[: held.start()]
            self._held = held[0] if len(held[0]) <= MAX_HELD_CHARS else held[0][:2]
        return _drop_controls(text)


def clean(text: str) -> str:
    """Return a whole text without anything but characters to be read, tabs and line ends."""
    return _drop_controls(_SEQUENCE.sub("", text.replace("\r\n", "\n")))


def clean_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(clean(text).split())


def reveal(text: str) -> str:
    """Return a text on one line in which what cannot be seen is written out: a person agrees to what will be done."""
    return _HIDDEN.sub(lambda found: _escape(found[0]), text)


def last_state(text: str) -> str:
    """Return the output of a command as a terminal would leave it where a line was written over and over."""
    return "\n".join(clean(line.rstrip("\r").rsplit("\r", 1)[-1]) for line in text.split("\n"))


def cells(text: str) -> int:
    """Return how many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cell, text))


def cut(text: str, width: int) -> str:
    """Return a text that takes at most so many columns; one that was cut ends in an ellipsis."""
    if cells(text) <= width:
        return text
    taken, used = "", 0
    for character in text:
        used += _cell(character)
        if used > width - 1:
            break
        taken += character
    return taken + "…"


def _cell(character: str) -> int:
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _drop_controls(text: str) -> str:
    return _CONTROL.sub("", text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
