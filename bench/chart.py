"""The chart of the performance page: one bar per measure on a logarithmic scale, for light and dark pages."""

import math
from collections.abc import Sequence
from html import escape

import msgspec

WIDTH = 860
LABEL_WIDTH = 380
RIGHT = 60
TOP = 58
ROW = 34
BAR = 14
BOTTOM = 34

LEGEND = "green: target reached · orange: missed · upright mark: the target · 1: as good as the other side"

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.small { font-size: 11px; fill: #59636e; }
.title { font-size: 15px; font-weight: 600; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.even { stroke: #59636e; stroke-width: 1.5; }
.reached { fill: #1a7f37; }
.missed { fill: #bc4c00; }
.target { stroke: #1f2328; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .small { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .even { stroke: #9198a1; }
  .reached { fill: #3fb950; }
  .missed { fill: #f0883e; }
  .target { stroke: #f0f6fc; }
}
"""


class Bar(msgspec.Struct, frozen=True):
    """One measure: the ratio to the other side, and the target of that ratio."""

    label: str
    against: str
    gain: float
    target: float

    @property
    def is_reached(self) -> bool:
        """Whether the bar reaches its target."""
        return self.gain >= self.target


def draw(bars: Sequence[Bar]) -> str:
    """Return the chart as SVG."""
    values = [value for bar in bars for value in (bar.gain, bar.target)] or [1.0]
    low = math.floor(math.log10(min(*values, 0.9)))
    high = math.ceil(math.log10(max(*values, 1.1)))
    height = TOP + ROW * len(bars) + BOTTOM

    def place(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return LABEL_WIDTH + share * (WIDTH - LABEL_WIDTH - RIGHT)

    bottom = TOP + ROW * len(bars)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title">',
        '<title id="title">How many times better than the other side each measure is, and its target</title>',
        f"<style>{STYLE}</style>",
        '<text class="title" x="16" y="24">Times better than the other side</text>',
        f'<text class="small" x="16" y="42">{LEGEND}</text>',
    ]
    for power in range(low, high + 1):
        x = place(10.0**power)
        parts.append(
            f'<line class="{"even" if power == 0 else "grid"}" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        )
        parts.append(f'<text class="small" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{10.0**power:g}</text>')
    for number, bar in enumerate(bars):
        parts += _draw_bar(bar, TOP + ROW * number, place(1.0), place(bar.gain), place(bar.target))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _draw_bar(bar: Bar, top: float, even: float, gain: float, target: float) -> list[str]:
    y = top + (ROW - BAR) / 2
    left, right = min(even, gain), max(even, gain)
    kind = "reached" if bar.is_reached else "missed"
    shown = f"{bar.gain:.0f}" if bar.gain >= 10 else f"{bar.gain:.2g}"
    return [
        f'<text x="16" y="{top + 15}">{escape(bar.label)}</text>',
        f'<text class="small" x="16" y="{top + 28}">{escape(bar.against)}</text>',
        f'<rect class="{kind}" x="{left:.1f}" y="{y:.1f}" width="{max(right - left, 1.5):.1f}" height="{BAR}" rx="2"/>',
        f'<line class="target" x1="{target:.1f}" y1="{y - 4:.1f}" x2="{target:.1f}" y2="{y + BAR + 4:.1f}"/>',
        f'<text class="small" x="{max(right, target) + 6:.1f}" y="{y + BAR - 3:.1f}">{shown}</text>',
    ]
