"""Streaming Markdown. A finished line becomes final rows, and the unfinished line is shown as it is so far.

Only the Markdown that models write is supported: headings, lists, quotes, fenced code, rules, emphasis, code and links.
Tables are printed as they are. No line waits for the next one.
"""

import re

from dragoman.cli.terminal.rows import Row, Span, hard_wrap, wrap

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})\s*([^`]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$")
_TASK = re.compile(r"^\[([ xX])\]\s+(.*)$")
_QUOTE = re.compile(r"^ {0,3}>\s?(.*)$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_TABLE = re.compile(r"^\s*\|.*\|?\s*$")
_INLINE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?P<inner>.+?)(?P=ticks)(?!`))"
    r"|!?\[(?P<label>[^\]]*)\]\((?P<url>[^)\s]*)(?:\s+\"[^\"]*\")?\)"
    r"|<(?P<auto>(?:https?|mailto):[^>\s]+)>"
    r"|\*\*\*(?P<both>\S(?:.*?\S)?)\*\*\*"
    r"|\*\*(?P<bold>\S(?:.*?\S)?)\*\*|(?<!\w)__(?P<bold2>\S(?:.*?\S)?)__(?!\w)"
    r"|\*(?P<italic>[^\s*](?:[^*]*[^\s*])?)\*|(?<!\w)_(?P<italic2>[^\s_](?:[^_]*[^\s_])?)_(?!\w)"
    r"|~~(?P<strike>\S(?:.*?\S)?)~~"
    r"|\\(?P<escaped>[\\`*_{}\[\]()#+\-.!~|<>])"
)
_BULLETS = "•◦▪"


class Markdown:
    """Renders one answer, piece by piece."""

    def __init__(self) -> None:
        self._line = ""
        self._fence = ""
        self._had_text = False

    def feed(self, text: str, width: int) -> list[Row]:
        """Add a piece and return the rows of the lines that it finished."""
        *lines, self._line = (self._line + text).split("\n")
        return [row for line in lines for row in self._render(line, width)]

    def partial(self, width: int) -> list[Row]:
        """Return the rows of the unfinished line."""
        if not self._line or self._could_be_fence():
            return []
        return self._body(self._line, width)

    def finish(self, width: int) -> list[Row]:
        """Return the rows of the unfinished line and reset."""
        line, self._line = self._line, ""
        rows = self._render(line, width) if line else []
        self._fence = ""
        self._had_text = False
        return rows

    def _could_be_fence(self) -> bool:
        return self._line.lstrip()[:3] in ("`", "``", "```", "~", "~~", "~~~")

    def _render(self, line: str, width: int) -> list[Row]:
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence[2].startswith(self._fence) and not fence[3].strip():
                self._fence = ""
                return []
        elif fence:
            self._fence = fence[2]
            self._had_text = True
            language = fence[3].strip()
            return [[Span("  "), Span(language, "dim")]] if language else []
        if not self._fence and not line.strip():
            return [[]] if self._had_text else []  # no blank rows before the first text
        self._had_text = True
        return self._body(line, width)

    def _body(self, line: str, width: int) -> list[Row]:
        if self._fence:
            return hard_wrap([Span(line, "cyan")], width, [Span("  │ ", "dim")])
        if _TABLE.match(line):
            return hard_wrap(inline(line), width)
        if heading := _HEADING.match(line):
            style = "bold underline" if len(heading[1]) == 1 else "bold"
            return wrap(inline(heading[2], f"{style} magenta"), width)
        return _paragraph(line, width)


class PlainText(Markdown):
    """Shows the user's text unchanged, with every backtick and star."""

    def _could_be_fence(self) -> bool:
        return False

    def _render(self, line: str, width: int) -> list[Row]:
        return self._body(line, width)

    def _body(self, line: str, width: int) -> list[Row]:
        text = line.lstrip()
        return wrap([Span(text)], width, line[: len(line) - len(text)])


def _paragraph(line: str, width: int) -> list[Row]:
    if _RULE.match(line):
        return [[Span("─" * min(width, 40), "dim")]]
    if quote := _QUOTE.match(line):
        return [[Span("▌ ", "dim"), *row] for row in wrap(inline(quote[1], "italic"), width - 2)]
    if item := _ITEM.match(line):
        return _list_item(item[1], item[2], item[3], width)
    text = line.lstrip()
    return wrap(inline(text), width, line[: len(line) - len(text)])


def inline(text: str, style: str = "") -> list[Span]:
    """Return the line as spans for emphasis, code and links. `style` applies to the whole line."""
    spans: list[Span] = []
    end = 0
    for found in _INLINE.finditer(text):
        spans.append(Span(text[end : found.start()], style))
        spans += _marked(found, style)
        end = found.end()
    spans.append(Span(text[end:], style))
    return [span for span in spans if span.text]


def _marked(found: re.Match[str], style: str) -> list[Span]:
    group = found.groupdict()
    if group["code"]:
        return [Span(group["inner"].strip() or group["inner"], f"{style} cyan".strip())]
    if group["label"] is not None:
        return _link(group["label"], group["url"], style)
    if group["auto"]:
        return [Span(group["auto"], f"{style} underline".strip())]
    if group["escaped"]:
        return [Span(group["escaped"], style)]
    for name, mark in _MARKS:
        if group[name]:
            return inline(group[name], f"{style} {mark}".strip())
    return [Span(found[0], style)]


_MARKS = (
    ("both", "bold italic"),
    ("bold", "bold"),
    ("bold2", "bold"),
    ("italic", "italic"),
    ("italic2", "italic"),
    ("strike", "strike"),
)


def _link(label: str, url: str, style: str) -> list[Span]:
    """Return a link that shows its URL, because a label can mislead."""
    shown = [Span(label, f"{style} underline blue".strip())] if label and label != url else []
    return [*shown, Span(f" ({url})" if shown else url, f"{style} dim".strip())]


def _list_item(indent: str, mark: str, text: str, width: int) -> list[Row]:
    depth = min(len(indent.replace("\t", "    ")) // 2, 8)
    lead = mark if mark[0].isdigit() else _BULLETS[min(depth, len(_BULLETS) - 1)]
    if task := _TASK.match(text):
        lead, text = ("☑" if task[1] != " " else "☐"), task[2]
    return wrap(inline(text), width, f"{'  ' * depth}{lead} ")
