"""A list of sessions, as a table for people."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from dragoman.protocol import v1
from dragoman.text import one_line
from dragoman.text.width import cells, cut

HEAD = ("ID", "TITLE", "UPDATED", "DIRECTORY")
SHORT_ID = 8
MIN_TITLE = 12
MAX_TITLE = 60


def table_lines(infos: Sequence[v1.SessionInfo], *, width: int | None, long: bool = False) -> Iterator[str]:
    """Yield the lines; `width` is that of a terminal, `long` gives everything in full."""
    shown = None if long else id_length([info.session_id for info in infos])
    rows = [HEAD, *(_cells(info, shown) for info in infos)]
    widths = [max(cells(row[column]) for row in rows) for column in range(len(HEAD) - 1)]
    if not long:
        others = widths[0] + widths[2] + max(cells(row[3]) for row in rows) + 3 * 2
        room = MAX_TITLE if width is None else max(MIN_TITLE, min(MAX_TITLE, width - others))
        widths[1] = min(widths[1], room)
    for row in rows:
        padded = [_pad(cell, size) for cell, size in zip(row, widths, strict=False)]
        yield "  ".join([*padded, row[-1]]).rstrip()


def id_length(ids: Sequence[str]) -> int:
    """Return how many letters tell these ids apart."""
    length, longest = SHORT_ID, max(map(len, ids), default=SHORT_ID)
    different = len(set(ids))
    while length < longest and len({session_id[:length] for session_id in ids}) < different:
        length += 1
    return length


def _cells(info: v1.SessionInfo, id_letters: int | None) -> tuple[str, ...]:
    return (
        one_line(info.session_id[:id_letters]),
        one_line(info.title or ""),
        _time(info.updated_at),
        _directory(one_line(info.cwd)),
    )


def _time(given: str | None) -> str:
    if given is None:
        return ""
    try:
        return datetime.fromisoformat(given).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return one_line(given)


def _directory(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def _pad(text: str, size: int) -> str:
    fitting = cut(text, size)
    return fitting + " " * (size - cells(fitting))
