"""What was understood of an agent file that was written for another agent."""

from collections.abc import Iterable

import msgspec

from dragoman.agent.yaml.words import listed, printable


class UnderstoodKey(msgspec.Struct, frozen=True):
    """One key of the file, what it means here, and whether it counts."""

    key: str
    meaning: str
    taken: bool = True


def what_is_not_used(understood: Iterable[UnderstoodKey]) -> str:
    """Say in one sentence which keys do not count; empty when all do."""
    left = [printable(row.key) for row in understood if not row.taken]
    return f"It was written for TsAgent, and these of its keys are not used here: {listed(left)}." if left else ""
