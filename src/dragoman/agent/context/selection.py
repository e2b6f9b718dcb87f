"""The selection: what was chosen for a turn, and why."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from dragoman.agent.profile.settings import Include, SearchSettings

Why = Literal["always", "mentioned", "by hand", "found by search"]


class Selection(msgspec.Struct):
    """Knows, by key, what is put before the model in one turn."""

    search: SearchSettings
    by_hand: frozenset[str] = frozenset()
    """What the person added: keys, and `server:NAME` for all tools of a server."""
    mentioned: frozenset[str] = frozenset()
    queries: tuple[str, ...] = ()
    """What is looked for: the prompt, and for a short one the prompt before."""
    found: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """What the search brought in, with its score; it stays for the turn."""
    scores: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """What the search looked at."""

    def why(self, key: str, include: Include, server: str = "") -> Why | None:
        """Say why something is put before the model; None: it is not."""
        if include == "always":
            return "always"
        if key in self.mentioned:
            return "mentioned"
        if self.is_by_hand(key, server):
            return "by hand"
        return "found by search" if key in self.found else None

    def is_by_hand(self, key: str, server: str = "") -> bool:
        """Tell whether a person has added it, or all of its server."""
        added = self.by_hand
        return bool(added) and (key in added or f"server:{server}" in added)

    def take(self, scores: Mapping[str, float]) -> None:
        """Take the best of what a search gave, beside what was taken before."""
        self.scores.update(scores)
        best = sorted(scores.items(), key=lambda each: -each[1])[: self.search.top_n]
        self.found.update((key, score) for key, score in best if score >= self.search.min_score)
