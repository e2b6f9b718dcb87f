"""Shortened versions of a long text: its beginning, its two ends, or a quotation in a sentence."""

from dragoman.text.safe import one_line


def shorten(text: str, max_chars: int) -> str:
    """Return a text of at most `max_chars` characters. A shortened text ends in an ellipsis."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def shorten_middle(text: str, max_chars: int, mark: str = "…", *, beginning: float = 0.5) -> str:
    """Return the two ends of a long text with a mark between them. `beginning` is the share of the first end."""
    if len(text) <= max_chars:
        return text
    room = max(max_chars - len(mark), 0)
    first = int(room * beginning)
    return f"{text[:first]}{mark}{text[len(text) - (room - first) :]}"


def quote(text: str, max_chars: int, mark: str = '"') -> str:
    """Return a foreign text in quotation marks: on one line, `visible`, and shortened if it is too long."""
    shown = one_line(text, max_chars).replace(mark, "'")
    return f"{mark}{shown}{mark}"
