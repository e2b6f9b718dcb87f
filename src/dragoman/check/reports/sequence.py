"""The sequence diagram of an exchange, as SVG without styles or scripts of its own."""

from collections.abc import Sequence
from html import escape

from dragoman.check.finding import Evidence
from dragoman.check.reports.words import name_entry, one_line

WIDTH = 760
LEFT, RIGHT = 130, 630
TOP, STEP, BOTTOM = 50, 46, 20
HEAD = 8
MAX_LETTERS = 56


def diagram(evidence: Sequence[Evidence]) -> str:
    """Draw entries in order, from top to bottom; a gap in their numbers is shown as one."""
    height = TOP + STEP * len(evidence) + BOTTOM
    title = escape(f"{len(evidence)} messages between client and agent")
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}" xmlns="http://www.w3.org/2000/svg">',
        *(_life(name, x, height) for name, x in (("client", LEFT), ("agent", RIGHT))),
    ]
    previous = None
    for place, entry in enumerate(evidence):
        y = TOP + STEP * place + STEP // 2
        if previous is not None and entry.n > previous + 1:
            parts.append(_skipped(entry.n - previous - 1, y))
        parts.append(_event(entry, y) if entry.event else _arrow(entry, y))
        previous = entry.n
    return "".join([*parts, "</svg>"])


def _life(name: str, x: int, height: int) -> str:
    return (
        f'<text class="side" x="{x}" y="22" text-anchor="middle">{name}</text>'
        f'<line class="life" x1="{x}" y1="32" x2="{x}" y2="{height - 8}"/>'
    )


def _arrow(entry: Evidence, y: int) -> str:
    start, end = (LEFT, RIGHT) if entry.sender == "client" else (RIGHT, LEFT)
    back = -HEAD if end > start else HEAD
    head = f"{end},{y} {end + back},{y - 4} {end + back},{y + 4}"
    return (
        f'<text x="{(LEFT + RIGHT) // 2}" y="{y - 7}" text-anchor="middle">{_label(entry)}</text>'
        f'<line class="arrow {entry.sender}" x1="{start}" y1="{y}" x2="{end + back}" y2="{y}"/>'
        f'<polygon class="{entry.sender}-head" points="{head}"/>'
        f"{_margin(entry, y)}"
    )


def _event(entry: Evidence, y: int) -> str:
    x = LEFT if entry.sender == "client" else RIGHT
    label = one_line(entry.event, 24)
    width = 16 + 8 * len(label)
    return (
        f'<rect class="note" x="{x - width // 2}" y="{y - 14}" width="{width}" height="22" rx="4"/>'
        f'<text x="{x}" y="{y + 2}" text-anchor="middle">{escape(label)}</text>{_margin(entry, y)}'
    )


def _margin(entry: Evidence, y: int) -> str:
    return (
        f'<text class="small" x="8" y="{y + 4}">{entry.n}</text>'
        f'<text class="small" x="{WIDTH - 8}" y="{y + 4}" text-anchor="end">{entry.at_s:.3f} s</text>'
    )


def _skipped(count: int, y: int) -> str:
    words = "1 other" if count == 1 else f"{count} others"
    return f'<text class="small" x="{LEFT + 12}" y="{y - STEP // 2 + 4}">⋮ {words}</text>'


def _label(entry: Evidence) -> str:
    return escape(one_line(name_entry(entry), MAX_LETTERS))
