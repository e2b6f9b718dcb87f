import re
import subprocess
import sys
from pathlib import Path

from dragoman.check import AREAS, RULES
from dragoman.check.rule import Version
from scripts.site.unruled import UNRULED
from tests.table import each_row

ROOT = Path(__file__).parent.parent.parent.parent
PAGES = {
    "agent-plan", "authentication", "cancellation", "content", "elicitation", "extensibility", "file-system",
    "initialization", "overview", "prompt-turn", "schema", "session-config-options", "session-delete", "session-list",
    "session-modes", "session-setup", "slash-commands", "terminals", "tool-calls", "transports",
}  # fmt: skip
PAGES_OF_V2 = {
    "agent-plan", "authentication", "cancellation", "content", "elicitation", "error", "extensibility",
    "initialization", "overview", "prompt-lifecycle", "schema", "session-config-options", "session-delete",
    "session-list", "session-setup", "slash-commands", "tool-calls", "transports",
}  # fmt: skip


PROPOSALS = {"rfds/streamable-http-websocket-transport"}


def pages_of(version: Version) -> set[str]:
    ruled = {clause.partition("#")[0] for rule in RULES.values() if (clause := rule.clauses.get(version))}
    return ruled | {clause.page for clause in UNRULED if clause.version == version}


def test_rule_ids_name_area_and_side():
    for rule in RULES.values():
        match = re.fullmatch(r"ACP-([A-Z]+)-([01])\d\d", rule.id)
        assert match is not None, rule.id
        assert match[1] in AREAS
        assert rule.side == ("client" if match[2] == "1" else "agent")


@each_row("rule", RULES.values())
def test_every_rule_has_its_texts(rule):
    assert all((rule.title, rule.versions, rule.exercised, rule.fix))
    assert rule.fix.endswith((".", "}}."))
    assert not rule.title.endswith(".")


def test_every_page_has_a_rule_or_a_reason():
    assert pages_of(1) == PAGES | PROPOSALS
    assert pages_of(2) == PAGES_OF_V2 | PROPOSALS


def test_clauses_without_a_rule_have_a_reason():
    assert all(clause.asks and clause.why for clause in UNRULED)


def test_rules_named_in_reasons_exist():
    named = {name for clause in UNRULED for name in re.findall(r"ACP-[A-Z]+-\d+", clause.why)}
    assert named
    assert named <= set(RULES)


def test_generated_table_of_later_fields_is_current():
    script = ROOT / "scripts" / "generate_later_fields.py"
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
