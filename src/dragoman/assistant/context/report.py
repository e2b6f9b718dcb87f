"""The report of the context as Markdown tables for the user: the items sent to the model, and the items left out.

It shows only names, never texts, arguments or addresses. Each scored item has a row. The others are grouped by
source and reason, and everything far from the prompt shares one row. So the report of a thousand tools is still
readable.
"""

from collections.abc import Iterable, Sequence

import msgspec

from dragoman.assistant.context.candidates import SERVER, Guidance, Selection, ToolOffer, listed, quote

MAX_NEAR_MISSES = 5
"""How many unselected items are shown with their scores: enough to choose a `min_score`."""

_LETTERS_PER_TOKEN = 4


class ReportRow(msgspec.Struct, frozen=True):
    """One item, and why it was or was not sent to the model."""

    key: str
    name: str
    source: str
    given: bool
    why: str
    score: float | None = None
    letters: int = 0
    """The number of characters that the model reads."""


def report(
    selection: Selection,
    offers: Sequence[ToolOffer],
    guidance: Sequence[Guidance],
    *,
    searched: bool,
) -> str:
    """Return tables of the selected and the unselected items."""
    tools = _tools(selection, offers)
    texts = [_text(selection, each) for each in guidance]
    sent = [row for row in (*tools, *texts) if row.given]
    left_out = [row for row in (*tools, *texts) if not row.given]
    parts = [f"**Sent to the model:** {_sum_up(tools, guidance, texts)}"]
    if sent:
        parts.append(_table(sent))
    if left_out:
        parts += ["**Left out:**", _table(_near_misses_first(left_out))]
    if searched:
        parts.append(_about_search(selection))
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
        return ReportRow(offer.key, offer.name, source, given=False, why=f"{quote(first.key)} already has this name")
    letters = len(msgspec.json.encode(offer.tool.definition))
    return ReportRow(offer.key, offer.name, source, given=True, why=why, score=score, letters=letters)


def _text(selection: Selection, guidance: Guidance) -> ReportRow:
    item, name = guidance.item, f"@{guidance.key}"
    source = {"rule": "rules", "ref": "references", "skill": "skills"}[guidance.kind]
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
        return msgspec.structs.replace(manual, why="agent: added to prompts that need it")
    if score is None:
        return _far(manual)
    why = f"others scored higher (`top_n` {search.top_n})"
    if score < search.min_score:
        why = f"score too low (`min_score` {search.min_score:g})"
    return msgspec.structs.replace(manual, why=why, score=score)


def _far(row: ReportRow) -> ReportRow:
    """Return the row for the group of items far from the prompt."""
    return msgspec.structs.replace(row, name=row.key, source="", why="less similar than the others", score=None)


def _near_misses_first(left: Sequence[ReportRow]) -> list[ReportRow]:
    """Put the best search results first, and group the rest."""
    scored = sorted((row for row in left if row.score is not None), key=lambda row: -(row.score or 0))
    rest = [row for row in left if row.score is None]
    return [*scored[:MAX_NEAR_MISSES], *map(_far, scored[MAX_NEAR_MISSES:]), *rest]


def _sum_up(tools: Sequence[ReportRow], guidance: Sequence[Guidance], texts: Sequence[ReportRow]) -> str:
    kinds = [each.kind for each, row in zip(guidance, texts, strict=True) if row.given]
    counts = [
        _count(sum(row.given for row in tools), "tool"),
        _count(kinds.count("rule"), "rule"),
        _count(kinds.count("ref"), "reference"),
        *([_count(kinds.count("skill"), "skill")] if "skill" in kinds else []),
    ]
    tokens = sum(row.letters for row in (*tools, *texts)) // _LETTERS_PER_TOKEN
    return f"{', '.join(counts)}; about {tokens:,} tokens."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _table(rows: Iterable[ReportRow]) -> str:
    groups: dict[tuple[str, str, str], list[ReportRow]] = {}
    for row in rows:
        own_row = row.name if row.score is not None else ""
        groups.setdefault((row.source, row.why, own_row), []).append(row)
    lines = ["| what | from | why | score |", "|---|---|---|--:|"]
    for (source, why, _), group in groups.items():
        score = "" if group[0].score is None else f"{group[0].score:.2f}"
        cells = [cell.replace("|", r"\|") for cell in (listed([row.name for row in group]), source, why, score)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _about_search(selection: Selection) -> str:
    search = selection.search
    return (
        f"The search includes up to {search.top_n} tools, and as many rules, references and skills, "
        f"with a score of at least {search.min_score:g}."
    )
