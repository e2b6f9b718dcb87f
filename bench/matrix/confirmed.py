"""A manual assessment of each finding: how it was confirmed, or why it is not a fault."""

from pathlib import Path
from typing import Literal

import msgspec

from bench.matrix.checked import Checked
from dragoman.check.results import Result
from dragoman.check.rule import Version

FILE = Path(__file__).parent / "confirmed.yaml"


class Confirmed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finding about some subjects, checked by hand."""

    rule: str
    subjects: tuple[str, ...]
    by: Literal["reading", "reproducing", "aside"]
    """How it was confirmed: read in the source, or reproduced by hand. `aside` means not the subject's fault."""
    why: str
    protocols: tuple[Version, ...] = (1,)
    """The versions of the protocol in which it was found."""


def read_confirmed() -> dict[tuple[str, str], Confirmed]:
    """Return the findings by subject and key of the result."""
    listed = msgspec.yaml.decode(FILE.read_bytes(), type=list[Confirmed])
    return {
        (subject, each.rule if version == 1 else f"{each.rule}@{version}"): each
        for each in listed
        for subject in each.subjects
        for version in each.protocols
    }


def findings(checked: Checked) -> list[Result]:
    """Return the breaches that the checker found in a subject."""
    return [each for each in checked.report.results if each.verdict in ("fail", "warn", "error")]
