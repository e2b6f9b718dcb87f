"""The query: what of a prompt is looked for.

People paste files and logs beside what they ask, and the mean of a thousand words means nothing. What they ask
stands first or last. So code between fences is left out, and of a long prompt four pieces are looked for, each by
itself: its first and its last line, cut, and its first and its last words. A passage scores as for the best piece.
"""

import re

MAX_WORDS = 60
"""A prompt up to this length is looked for as a whole; real questions are shorter."""
_LINE_WORDS = 30
_MAX_CHARACTERS = 4_000
"""From either end: more than `MAX_WORDS` words, and little enough for a prompt of megabytes to cost nothing."""

_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def pieces(prompt: str) -> list[str]:
    """Give the texts to look for, at least one unless the prompt is blank."""
    text = _FENCED.sub("\n", prompt).strip() or prompt.strip()
    if len(text) > 2 * _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}\n{text[-_MAX_CHARACTERS:]}"
    words = text.split()
    if len(words) <= MAX_WORDS:
        return [" ".join(words)] if words else []
    lines = [line.split() for line in text.splitlines() if line.strip()]
    cut = (lines[0][:_LINE_WORDS], lines[-1][-_LINE_WORDS:], words[:MAX_WORDS], words[-MAX_WORDS:])
    return list(dict.fromkeys(" ".join(piece) for piece in cut))
