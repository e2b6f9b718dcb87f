"""Generate docs/check-rules.md from the rules of the checker; `--check` only compares."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from dragoman.check import AREAS, RULES, Rule
from dragoman.check.rules.unruled import UNRULED, Clause

TARGET = Path(__file__).resolve().parent.parent / "docs" / "check-rules.md"

HEAD = """\
# The rules of the checker

Made by scripts/generate_rules_page.py from src/dragoman/check/rules: change those, not this page.

`dragoman check` and `dragoman tap` judge a conversation by these {count} rules, {agent} on agents and {client} on
clients. Rules on agents are numbered from 001 in each area, rules on clients from 101. The level says what a rule
rests on: `must` on a MUST of the specification or on its schema, `should` on a SHOULD or on what every peer relies
on, `disputed` on what implementers do not agree about, so that it is never more than a warning. A rule has passed
only when there was an occasion to break it; the table says what makes one.
"""


def generate() -> str:
    """Return the page."""
    agent = sum(rule.role == "agent" for rule in RULES.values())
    lines = [HEAD.format(count=len(RULES), agent=agent, client=len(RULES) - agent)]
    for area, title in AREAS.items():
        lines.extend(_area(title, [rule for rule in RULES.values() if rule.area == area]))
    lines.extend(_unruled())
    return "\n".join(lines) + "\n"


def _area(title: str, rules: list[Rule]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| Rule | Level | What is asked | Clause | Judged on | How to mend it |"
    yield "|---|---|---|---|---|---|"
    for rule in rules:
        clause = f"[{rule.clause}]({rule.url})"
        cells = (rule.id, rule.level, rule.title, clause, rule.exercised, rule.fix)
        yield f"| {' | '.join(map(_cell, cells))} |"
    yield ""


def _unruled() -> Iterator[str]:
    yield "## Clauses without a rule\n"
    yield "| Clause | What is asked | Why there is no rule |"
    yield "|---|---|---|"
    for clause in UNRULED:
        yield f"| [{_name(clause)}]({clause.url}) | {_cell(clause.asks)} | {_cell(clause.why)} |"


def _name(clause: Clause) -> str:
    return f"{clause.page}#{clause.section}" if clause.section else clause.page


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Write the page, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is not up to date")
    if not parser.parse_args().check:
        TARGET.write_text(generate(), "utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text("utf-8") == generate():
        return 0
    print(f"{TARGET} is not what the rules give; run scripts/generate_rules_page.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
