"""`python -m bench.matrix [NAME …]`: check all or the named subjects, and write their pages.

The other results come from the last run. A page without a named subject is not changed. `--pages` checks
nothing and writes both pages. The exit code is 1 if a finding is not confirmed or if our own agent or client failed.
"""

import sys
from collections.abc import Sequence

from bench import commands
from bench.matrix.checked import Checked, keep, plain, recall
from bench.matrix.checking import check
from bench.matrix.confirmed import findings, read_confirmed
from bench.matrix.pages import COMPARED, PROMPTED, Column, matrix_page
from bench.matrix.prompted import prompted_agents
from bench.matrix.registry import registry_agents
from bench.matrix.subject import Subject
from bench.matrix.subjects import AGENTS, CLIENTS
from bench.measure import MissingError
from dragoman.errors import DragomanError
from dragoman.text import one_line

PAGES = {
    "check-matrix.md": (COMPARED, (*AGENTS, *registry_agents(), *CLIENTS)),
    "check-matrix-prompts.md": (PROMPTED, prompted_agents()),
}
SUBJECTS = [subject for _, subjects in PAGES.values() for subject in subjects]
DOCS = commands.ROOT / "docs"
MAX_REASON = 400


def main(names: Sequence[str]) -> int:
    """Check the subjects and write the pages."""
    unknown = set(names) - {each.name for each in SUBJECTS} - {"--pages"}
    if unknown:
        print(f"there is no {', '.join(sorted(unknown))}; known are: {', '.join(each.name for each in SUBJECTS)}")
        return 2
    # Without names, all pages are written. With names, only the pages that contain a named subject.
    open_: list[str] = []
    for page, (title, subjects) in PAGES.items():
        if not names or "--pages" in names or any(each.name in names for each in subjects):
            open_ += _write_page(page, title, subjects, names)
    for each in open_:
        print(each)
    return 1 if open_ else 0


def _write_page(page: str, title: str, subjects: Sequence[Subject], names: Sequence[str]) -> list[str]:
    """Check the selected subjects and write one page. Return the findings that are not confirmed."""
    columns: list[Column] = []
    missing: list[tuple[Subject, str]] = []
    for subject in subjects:
        try:
            columns.append((subject, _checked(subject, anew=not names or subject.name in names)))
        except (MissingError, DragomanError) as error:
            missing.append((subject, plain(one_line(str(error)), MAX_REASON)))
    confirmations = read_confirmed()
    (DOCS / page).write_text(matrix_page(title, columns, missing, confirmations))
    for subject, why in missing:
        print(f"{subject.name} is left out: {why}")
    return [
        f"{subject.name}: {result.key} {result.detail}"
        for subject, checked in columns
        for result in findings(checked)
        if subject.is_ours or (subject.name, result.key) not in confirmations
    ]


def _checked(subject: Subject, *, anew: bool) -> Checked:
    kept = recall(subject.name)
    if not anew and kept is not None:
        return kept
    print(f"Checking {subject.name}", flush=True)
    checked = check(subject)
    keep(checked)
    return checked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
