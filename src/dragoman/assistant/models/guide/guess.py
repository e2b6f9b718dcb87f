"""Which tool of a server a request means: by name, by its words, and where these do not decide, by what it means."""

from collections.abc import Sequence

import msgspec

from dragoman.assistant.models.guide.arguments import Filling
from dragoman.assistant.models.guide.literal import Masked
from dragoman.assistant.models.guide.meaning import Meaning
from dragoman.assistant.models.guide.prompt import LONG, without_courtesy, without_ending
from dragoman.assistant.models.guide.ranking import (
    CALLS,
    MIN_COVERAGE,
    MIN_POINTS,
    Ranked,
    ToolRequest,
    changes_unasked,
    named_tools,
    names,
    rank,
    read_request,
    reconsider,
    strangers,
)
from dragoman.assistant.models.guide.sighting import PATHS_NAMES
from dragoman.assistant.models.guide.trade import own_name
from dragoman.assistant.models.guide.value import is_about
from dragoman.assistant.models.guide.words import GENERIC, mean, meanings
from dragoman.assistant.models.model import ToolDefinition

NAMED = 20.0
"""The points of a tool that was called by its name."""

CLOSE = 2.5
MAX_CLOSE = 5
"""Tools whose points are this close to the best, and so many, are judged by how well the request fills them."""

SURE_POINTS = 5.0
SURE_COVERAGE = 0.7
"""What is needed of a tool to be used on the strength of its words alone, when the request fills in nothing of it."""

NEAR_WEIGHT = 6.0
"""Points for being as near as can be; chosen with the others on the sentences of the tests."""

SURE_NEAR = 0.45
SURE_LEAD = 1.0
SURE_KNOWN = 2
"""How near a tool has to be, by how many points ahead of the next, and with how many words in common if the request
fills in nothing of it, to be used on the strength of its meaning."""

MIN_NEAR = 0.3
FAINT_NEAR = 0.2
FAINT_POINTS = 1.5
MAX_QUESTIONED = 3
"""Tools that share a word and are at least so near, or less with more words that speak for them, are asked about, so
many at most; one that shares none must be nearer."""


class Guess(msgspec.Struct, frozen=True):
    """The tools that may be meant, best first: the first one is, if `is_sure`; none when there is nothing to guess."""

    tools: tuple[ToolDefinition, ...] = ()
    points: float = 0.0
    is_sure: bool = True


def guess(masked: Masked, tools: Sequence[ToolDefinition], meaning: Meaning | None) -> Guess:
    """Return the tools that a request may mean; `meaning` is asked only if the words do not decide."""
    if len(masked.text) > LONG:
        return Guess()
    named = _called_by_name(masked, tools)
    if named.tools:
        return named
    request = read_request(masked)
    ranked = _reconsidered(rank(request, tools), request, masked)
    spoken = _spoken_of(ranked, masked)
    if spoken.is_sure or meaning is None:
        return spoken if spoken.is_sure else Guess()
    return _meant(masked, request, tools, ranked, meaning)


def _called_by_name(masked: Masked, tools: Sequence[ToolDefinition]) -> Guess:
    text = without_ending(without_courtesy(masked.text))
    named = named_tools(text, tools)
    ordered = _by_fullness([(0.0, tool) for tool in named], masked)
    if not ordered:
        return Guess()
    _, best, filling = ordered[0]
    own = own_name(best)
    if "_" not in own and mean(own.lower()) in GENERIC and filling.missing() and not CALLS.match(text):
        return Guess()
    equal = tuple(tool for points, tool, _ in ordered if points == ordered[0][0])
    return Guess(equal[:MAX_QUESTIONED] if len(equal) > 1 else (best,), NAMED, is_sure=len(equal) == 1)


def _reconsidered(ranked: Sequence[Ranked], request: ToolRequest, masked: Masked) -> list[Ranked]:
    """Let words that a tool takes as values not count against it, when that is all that does."""
    found: list[Ranked] = []
    for place, one in enumerate(ranked):
        is_doubtful = place < MAX_CLOSE and not one.is_meant and one.points >= MIN_POINTS
        found.append(reconsider(one, request, _values(one.tool, request, masked)) if is_doubtful else one)
    return sorted(found, key=lambda one: -one.points)


def _values(tool: ToolDefinition, request: ToolRequest, masked: Masked) -> frozenset[str]:
    filling = _filling(tool, masked)
    sure = {name: value for name, value in filling.arguments.items() if name != filling.spare}
    leads = names(tool, request.first) and request.first not in GENERIC
    known = filling.arguments if leads and not _is_place(filling) else sure
    return meanings(" ".join(map(str, known.values())))


def _spoken_of(ranked: Sequence[Ranked], masked: Masked) -> Guess:
    """Return the tool that the words speak of: of several, the one that they fill best."""
    meant = [one for one in ranked if one.is_meant]
    if not meant:
        return Guess(is_sure=False)
    close = [one for one in meant if one.points > meant[0].points - CLOSE][:MAX_CLOSE]
    _, best, filling = _by_fullness([(one.points, one.tool) for one in close], masked)[0]
    chosen = next(one for one in close if one.tool is best)
    is_plain = chosen.coverage >= SURE_COVERAGE and (chosen.points >= SURE_POINTS or bool(filling.missing()))
    return Guess((best,), chosen.points, is_sure=is_plain or _is_filled(filling))


def _by_fullness(
    found: Sequence[tuple[float, ToolDefinition]], masked: Masked
) -> list[tuple[float, ToolDefinition, Filling]]:
    fillings = [(points, tool, _filling(tool, masked)) for points, tool in found]
    judged = [(points + _fullness(filling), tool, filling) for points, tool, filling in fillings]
    return sorted(judged, key=lambda one: -one[0])


def _filling(tool: ToolDefinition, masked: Masked) -> Filling:
    filling = Filling(tool, masked, {})
    filling.fill()
    return filling


def _fullness(filling: Filling) -> float:
    return 0.5 * len(filling.arguments) - len(filling.missing())


def _meant(
    masked: Masked, request: ToolRequest, tools: Sequence[ToolDefinition], ranked: Sequence[Ranked], meaning: Meaning
) -> Guess:
    """Return the tools that a request is nearest to, by its words and by its meaning together."""
    text = masked.restore(f"{without_ending(without_courtesy(masked.text))} ")
    known = strangers(request, tools)
    near = meaning.near(text, known)
    if not near:
        return Guess()
    words = {one.tool.name: one for one in ranked}
    judged = [
        (_together(words.get(tool.name), near.get(tool.name, 0.0)), tool)
        for tool in known
        if not changes_unasked(tool, request)
    ]
    ordered = _by_fullness(sorted(judged, key=lambda one: -one[0])[:MAX_CLOSE], masked)
    likely = [one for one in ordered if _is_likely(words.get(one[1].name), near.get(one[1].name, 0.0))]
    if not likely:
        return Guess()
    points, best, filling = likely[0]
    lead = points - likely[1][0] if len(likely) > 1 else points
    spoken = words.get(best.name)
    is_near = near.get(best.name, 0.0) >= (MIN_NEAR if _is_filled(filling) else SURE_NEAR)
    is_spoken_of = spoken is not None and spoken.coverage >= MIN_COVERAGE
    is_backed = _is_filled(filling) or (spoken is not None and spoken.known >= SURE_KNOWN)
    is_sure = is_near and is_spoken_of and is_backed and lead >= SURE_LEAD
    rivals = tuple(tool for one, tool, _ in likely if one > points - CLOSE)[:MAX_QUESTIONED]
    return Guess((best,) if is_sure else rivals, points, is_sure=is_sure)


def _is_filled(filling: Filling) -> bool:
    """Tell whether a request shows that a tool is meant by holding all that it needs."""
    shown = len(filling.arguments) - _is_place(filling)
    return shown > 0 and not filling.missing()


def _is_place(filling: Filling) -> bool:
    """Tell whether the rest of a sentence was taken for a path, though it does not look like one."""
    return any(one.name == filling.spare and is_about(one, *PATHS_NAMES) for one in filling.known)


def _together(spoken: Ranked | None, near: float) -> float:
    words = 0.0 if spoken is None else spoken.points * min(1.0, spoken.coverage)
    return words + NEAR_WEIGHT * near


def _is_likely(spoken: Ranked | None, near: float) -> bool:
    if spoken is None or not spoken.known:
        return near >= SURE_NEAR
    if near >= MIN_NEAR:
        return True
    is_faint = near >= FAINT_NEAR and spoken.points >= FAINT_POINTS and spoken.coverage >= SURE_COVERAGE
    return spoken.is_meant or is_faint
