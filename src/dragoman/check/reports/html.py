"""A report as one HTML file without other resources.

Text from an agent or a client is escaped. The page has no scripts, and its policy forbids scripts and all external
content. The evidence of each failure is drawn as a sequence diagram in SVG.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from dragoman.check.reports.named_report import WORDS, NamedReport, name_entry, pretty
from dragoman.check.results import Evidence, Result, Verdict
from dragoman.text import one_line

STYLE = """
:root { color-scheme: light dark; --text: #1c1c1e; --back: #fbfbfa; --card: #ffffff; --faint: #63636a; --line: #dddde2;
  --code: #f3f3f1; --fail: #b3261e; --warn: #8a5a00; --pass: #1a7f37; --error: #7b2cbf; --client: #2456a6;
  --agent: #8a3b12; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8ea; --back: #161618; --card: #1f1f22; --faint: #a3a3ab;
  --line: #3a3a40; --code: #28282c; --fail: #ff8a80; --warn: #e3b341; --pass: #56d364; --error: #d2a8ff;
  --client: #8ab4f8; --agent: #f0a67a; } }
* { box-sizing: border-box; }
body { color: var(--text); background: var(--back); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 60rem; padding: 2rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 0; }
a { color: inherit; }
.counts { display: flex; flex-wrap: wrap; gap: .5rem; padding: 0; margin: 0 0 2rem; list-style: none; }
.counts li { border: 1px solid var(--line); border-radius: .5rem; background: var(--card); padding: .35rem .8rem; }
.counts b { font-size: 1.2rem; margin-right: .35rem; font-variant-numeric: tabular-nums; }
.fail { color: var(--fail); } .warn { color: var(--warn); } .pass { color: var(--pass); }
.error { color: var(--error); } .not_exercised, .faint { color: var(--faint); }
article { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.2rem;
  margin: 0 0 1rem; }
article p { margin: .5rem 0; }
.tag { font-size: .8rem; color: var(--faint); }
.tag b { text-transform: uppercase; }
figure { margin: 1rem 0; overflow-x: auto; }
figcaption { font-size: .85rem; color: var(--faint); }
svg { width: 100%; min-width: 34rem; height: auto; display: block; }
svg text { fill: var(--text); font: 13px ui-monospace, monospace; }
svg .side { font: 600 13px system-ui, sans-serif; }
svg .small { fill: var(--faint); font-size: 11px; }
svg .life { stroke: var(--line); stroke-width: 2; }
svg .arrow { stroke-width: 1.5; } svg .client { stroke: var(--client); } svg .agent { stroke: var(--agent); }
svg .client-head { fill: var(--client); } svg .agent-head { fill: var(--agent); }
svg .note { fill: var(--code); stroke: var(--line); }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; font-size: .9rem; }
pre { background: var(--code); border-radius: .35rem; padding: .6rem .8rem; white-space: pre-wrap; margin: .5rem 0;
  font: .85rem/1.45 ui-monospace, monospace; max-height: 24rem; overflow: auto; unicode-bidi: plaintext; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; }
td:first-child { white-space: nowrap; font-family: ui-monospace, monospace; font-size: .85rem; }
"""

_CHIPS: tuple[tuple[Verdict, str], ...] = (
    ("error", "errors of the checker"),
    ("fail", "failed"),
    ("warn", "warnings"),
    ("pass", "passed"),
    ("not_exercised", "not exercised"),
)
_HEADINGS: dict[Verdict, str] = {"error": "Errors of the checker", "fail": "Failures", "warn": "Warnings"}


def render(subject: NamedReport) -> str:
    """Render the page."""
    title = escape(f"{one_line(subject.name)}: {subject.counts}")
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    body = "\n".join((_counts(subject), *_faults(subject), *_others(subject)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{_line(subject.name)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _counts(subject: NamedReport) -> str:
    verdicts = [result.verdict for result in subject.report.results]
    chips = "".join(
        f'<li class="{verdict}"><b>{verdicts.count(verdict)}</b>{label}</li>'
        for verdict, label in _CHIPS
        if verdicts.count(verdict)
    )
    return f'<ul class="counts">{chips}</ul>'


def _faults(subject: NamedReport) -> Iterator[str]:
    for verdict, heading in _HEADINGS.items():
        faults = [result for result in subject.ordered if result.verdict == verdict]
        if faults:
            yield f"<h2>{heading}</h2>"
            yield from (_fault(result, is_known=subject.is_known(result)) for result in faults)


def _fault(result: Result, *, is_known: bool) -> str:
    known = " · known" if is_known else ""
    tag = f'<b class="{result.verdict}">{WORDS[result.verdict]}</b> · {_line(result.key)} · {result.level}{known}'
    fix = f"<p><b>Fix:</b> {_line(result.fix)}</p>" if result.fix else ""
    return (
        f'<article><p class="tag">{tag}</p><h3>{_line(result.title)}</h3><p>{_line(result.detail)}</p>{fix}'
        f'<p class="faint">Clause: {_clause(result)}</p>{"".join(_exchanges(result))}</article>'
    )


def _exchanges(result: Result) -> Iterator[str]:
    for conversation, group in groupby(result.evidence, key=lambda each: each.conversation):
        evidence = list(group)
        caption = f"The exchange{f' in {_line(conversation)}' if conversation else ''}"
        yield f"<figure><figcaption>{caption}</figcaption>{diagram(evidence)}</figure>"
        for entry in evidence:
            if not entry.event:
                head = f"{entry.n} · {entry.sender} · {escape(name_entry(entry))}"
                yield f"<details><summary>{head}</summary><pre>{escape(pretty(entry))}</pre></details>"


def _others(subject: NamedReport) -> Iterator[str]:
    for verdict, heading in (("not_exercised", "Not exercised"), ("pass", "Passed")):
        results = [result for result in subject.ordered if result.verdict == verdict]
        if results:
            rows = "".join(
                f"<tr><td>{_line(each.key)}</td><td>{each.level}</td><td>{_line(each.title)}"
                f'{_needed(each)}</td><td class="faint">{_clause(each)}</td></tr>'
                for each in results
            )
            head = "<tr><th>rule</th><th>level</th><th>title</th><th>clause</th></tr>"
            yield (
                f'<h2>{heading}</h2><details><summary>{len(results)} rules</summary><div class="scroll"><table>{head}'
                f"{rows}</table></div></details>"
            )


def _needed(result: Result) -> str:
    return f'<br><span class="faint">{_line(result.detail)}</span>' if result.detail else ""


def _clause(result: Result) -> str:
    if result.url.startswith("https://"):
        return f'<a href="{escape(result.url)}" rel="noreferrer">{_line(result.clause)}</a>'
    return _line(result.clause)


def _line(text: str) -> str:
    return escape(one_line(text))


WIDTH = 760
LEFT, RIGHT = 130, 630
TOP, STEP, BOTTOM = 50, 46, 20
HEAD = 8
MAX_LETTERS = 56


def diagram(evidence: Sequence[Evidence]) -> str:
    """Draw entries from top to bottom. A gap in their numbers is marked."""
    height = TOP + STEP * len(evidence) + BOTTOM
    title = escape(f"{len(evidence)} messages between client and agent")
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}" xmlns="http://www.w3.org/2000/svg">',
        *(_draw_lifeline(name, x, height) for name, x in (("client", LEFT), ("agent", RIGHT))),
    ]
    previous = None
    for place, entry in enumerate(evidence):
        y = TOP + STEP * place + STEP // 2
        if previous is not None and entry.n > previous + 1:
            parts.append(_skipped(entry.n - previous - 1, y))
        parts.append(_event(entry, y) if entry.event else _draw_arrow(entry, y))
        previous = entry.n
    return "".join([*parts, "</svg>"])


def _draw_lifeline(name: str, x: int, height: int) -> str:
    return (
        f'<text class="side" x="{x}" y="22" text-anchor="middle">{name}</text>'
        f'<line class="life" x1="{x}" y1="32" x2="{x}" y2="{height - 8}"/>'
    )


def _draw_arrow(entry: Evidence, y: int) -> str:
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
    text = "1 other" if count == 1 else f"{count} others"
    return f'<text class="small" x="{LEFT + 12}" y="{y - STEP // 2 + 4}">⋮ {text}</text>'


def _label(entry: Evidence) -> str:
    return escape(one_line(name_entry(entry), MAX_LETTERS))
