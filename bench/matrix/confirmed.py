"""The judgement of a person about each finding: how it was confirmed, or why it is none."""

from pathlib import Path
from typing import Literal

import msgspec

from bench.matrix.checked import Checked
from dragoman.check.results import Result

FILE = Path(__file__).parent / "confirmed.yaml"


class Confirmed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finding about some subjects, looked at by hand."""

    rule: str
    subjects: tuple[str, ...]
    by: Literal["reading", "reproducing", "aside"]
    """Reading its source, or reproducing it by hand; `aside` when it is no fault of the subject."""
    why: str


def read_confirmed() -> dict[tuple[str, str], Confirmed]:
    """Return them by subject and rule."""
    listed = msgspec.yaml.decode(FILE.read_bytes(), type=list[Confirmed])
    return {(subject, each.rule): each for each in listed for subject in each.subjects}


def findings(checked: Checked) -> list[Result]:
    """Return the breaches that the checker found in a subject."""
    return [each for each in checked.report.results if each.verdict in ("fail", "warn", "error")]
