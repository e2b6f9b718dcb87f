"""The selection: which items a prompt brings in."""

import msgspec

from dragoman.agent.search.index import SearchIndex


class SelectedItem(msgspec.Struct, frozen=True):
    """An item that was chosen, with the score of its best passage."""

    key: str
    score: float


async def select(index: SearchIndex, query: str, *, top_k: int, top_n: int, min_score: float) -> list[SelectedItem]:
    """Look at the `top_k` best passages and give at most `top_n` of their items, each of at least `min_score`."""
    best: dict[str, float] = {}
    for hit in await index.search(query, top_k):
        if hit.score >= min_score:
            best.setdefault(hit.key, hit.score)
    return [SelectedItem(key, score) for key, score in list(best.items())[:top_n]]
