"""The report: the things that the model was given and the others, as Markdown tables for a person.

Names are all that it shows of tools, rules and references: no text, no argument, no address. What has a score has a
row; of the rest, those from one place and for one reason share one, and so does all that was far from the prompt, so
that a thousand tools stay readable.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from dragoman.assistant.context.candidates import SERVER, Guidance, Selection, ToolOffer, listed, quote

MAX_NEAR_MISSES = 5
"""Things that were not found are shown with their scores up to this number: enough to choose a `min_score` by."""

_LETTERS_PER_TOKEN = 4
_ENGINES = {"semantic": "by meaning and by words", "lexical": "by words only"}


class ReportRow(msgspec.Struct, frozen=True):
    """One thing: why it was given to the model, or was not."""

    key: str
    name: str
    source: str
    given: bool
    why: str
    score: float | None = None
    letters: int = 0
    """How much there is for the model to read."""


def report(
    selection: Selection,
    offers: Sequence[ToolOffer],
    guidance: Sequence[Guidance],
    engine: Literal["semantic", "lexical"] | None,
) -> str:
    """Show the chosen things, and those that were left out."""
    tools = _tools(selection, offers)
    texts = [_text(selection, each) for each in guidance]
    given = [row for row in (*tools, *texts) if row.given]
    left = [row for row in (*tools, *texts) if not row.given]
    parts = [f"**Given to the model:** {_sum_up(tools, guidance, texts)}"]
    if given:
        parts.append(_table(given))
    if left:
        parts += ["**Left out:**", _table(_near_misses_first(left))]
    if engine is not None:
        parts.append(_about_search(selection, engine))
    return "\n\n".join(parts)


def _tools(selection: Selection, offers: Sequence[ToolOffer]) -> list[ReportRow]:
    names: dict[str, ToolOffer] = {}
    return [_tool(selection, offer, names) for offer in offers]


def _tool(selection: Selection, offer: ToolOffer, names: dict[str, ToolOffer]) -> ReportRow:
    source = {
        "builtin": "built in",
        "session": f"{quote(offer.server)} (client)",
        "agent": f"{quote(offer.server)} (agent)",
    }[offer.origin]
    why = selection.why(offer.key, offer.include, offer.server)
    score = selection.found.get(offer.key) if why == "found by search" else None
    if why is None:
        adds = f"manual: {quote(f'/include {offer.key}')} adds it"
        if offer.server:
            adds = f"manual: `/include` adds one, {quote(f'/include {SERVER}{offer.server}')} all"
        return _left_out(selection, ReportRow(offer.key, offer.name, source, given=False, why=adds), offer.include)
    first = names.setdefault(offer.tool.definition.name, offer)
    if first is not offer:
        return ReportRow(
            offer.key, offer.name, source, given=False, why=f"the model knows {quote(first.key)} by its name"
        )
    letters = len(msgspec.json.encode(offer.tool.definition))
    return ReportRow(offer.key, offer.name, source, given=True, why=why, score=score, letters=letters)


def _text(selection: Selection, guidance: Guidance) -> ReportRow:
    item, name = guidance.item, f"@{guidance.key}"
    source = {"rule": "rules", "ref": "references"}[guidance.kind]
    why = selection.why(guidance.key, item.include)
    if why is None:
        adds = "manual: its name in a prompt adds it to that, `/include` to the session"
        return _left_out(selection, ReportRow(guidance.key, name, source, given=False, why=adds), item.include)
    score = selection.found.get(guidance.key) if why == "found by search" else None
    return ReportRow(guidance.key, name, source, given=True, why=why, score=score, letters=len(item.text))


def _left_out(selection: Selection, manual: ReportRow, include: str) -> ReportRow:
    if include == "manual":
        return manual
    score, search = selection.scores.get(manual.key), selection.search
    if not selection.queries:
        return msgspec.structs.replace(manual, why="agent: comes with a prompt that needs it")
    if score is None:
        return _far(manual)
    why = f"others were nearer (`top_n` {search.top_n})"
    if score < search.min_score:
        why = f"not near enough (`min_score` {search.min_score:g})"
    return msgspec.structs.replace(manual, why=why, score=score)


def _far(row: ReportRow) -> ReportRow:
    """Make one of those that share a row, wherever they are from."""
    return msgspec.structs.replace(row, name=row.key, source="", why="further off", score=None)


def _near_misses_first(left: Sequence[ReportRow]) -> list[ReportRow]:
    """Put the best results of the search first, and the rest in one row."""
    scored = sorted((row for row in left if row.score is not None), key=lambda row: -(row.score or 0))
    rest = [row for row in left if row.score is None]
    return [*scored[:MAX_NEAR_MISSES], *map(_far, scored[MAX_NEAR_MISSES:]), *rest]


def _sum_up(tools: Sequence[ReportRow], guidance: Sequence[Guidance], texts: Sequence[ReportRow]) -> str:
    kinds = [each.kind for each, row in zip(guidance, texts, strict=True) if row.given]
    counts = [
        _count(sum(row.given for row in tools), "tool"),
        _count(kinds.count("rule"), "rule"),
        _count(kinds.count("ref"), "reference"),
    ]
    tokens = sum(row.letters for row in (*tools, *texts)) // _LETTERS_PER_TOKEN
    return f"{', '.join(counts)}; about {tokens:,} tokens."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _table(rows: Iterable[ReportRow]) -> str:
    groups: dict[tuple[str, str, str], list[ReportRow]] = {}
    for row in rows:
        alone = row.name if row.score is not None else ""
        groups.setdefault((row.source, row.why, alone), []).append(row)
    lines = ["| what | from | why | score |", "|---|---|---|--:|"]
    for (source, why, _), group in groups.items():
        score = "" if group[0].score is None else f"{group[0].score:.2f}"
        cells = [cell.replace("|", r"\|") for cell in (listed([row.name for row in group]), source, why, score)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _about_search(selection: Selection, engine: Literal["semantic", "lexical"]) -> str:
    search = selection.search
    return (
        f"The search went {_ENGINES[engine]}: up to {search.top_n} tools, and as many rules and references, "
        f"with a score of at least {search.min_score:g}."
    )
