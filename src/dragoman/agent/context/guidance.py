"""Rules and references, as one kind of thing: texts that tell the model how to work, or what to know."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.agent.profile import Profile
from dragoman.agent.profile.items import TextItem

Kind = Literal["rule", "ref"]

_TAGS = {"rule": "rule", "ref": "reference"}
_OPENING = "Keep to every rule below. A reference is there to be used where it helps."


class Guidance(msgspec.Struct, frozen=True):
    """A rule or a reference."""

    kind: Kind
    item: TextItem

    @property
    def key(self) -> str:
        """How it is called: `rule:NAME`, `ref:NAME`."""
        return f"{self.kind}:{self.item.name}"


def guidance_of(profile: Profile) -> list[Guidance]:
    """Return all there is, in order: by priority; of the same, rules before references; then by name."""
    there = [Guidance("rule", item) for item in profile.rules] + [Guidance("ref", item) for item in profile.references]
    return sorted(there, key=lambda each: (each.item.priority, each.kind != "rule", each.item.name))


def instruct(chosen: Sequence[Guidance]) -> str:
    """Return the words for the model, "" when nothing was chosen."""
    # Tags rather than headings: the texts are Markdown with headings of their own.
    parts = [
        f'<{_TAGS[each.kind]} name="{each.item.name}">\n{each.item.text.strip()}\n</{_TAGS[each.kind]}>'
        for each in chosen
    ]
    return "\n\n".join([_OPENING, *parts]) if parts else ""
