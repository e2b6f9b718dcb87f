"""Texts of unknown origin, made fit for one line of a log, a title or a list."""

import re

_UNSEEN = re.compile(
    "\x1b\\[[0-9;?]*[ -/]*[@-~]"  # colours and cursor moves
    "|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
    "|[\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"  # those that turn or hide the letters around them
    "|[\ud800-\udfff]"
)


def legible(text: str, max_letters: int) -> str:
    """Return a text as one line, without what a terminal or an editor would obey, and not too long."""
    # Cut at first as well, with room for what is taken out: a hostile text may have millions of letters.
    line = " ".join(_UNSEEN.sub("", text[: 4 * max_letters]).split())
    return line if len(line) <= max_letters and len(text) <= 4 * max_letters else f"{line[: max_letters - 1]}…"
