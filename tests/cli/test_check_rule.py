"""`dragoman check rule` explains a rule."""

from dragoman.check import RULES
from tests.commands import dragoman


def explain(*ids):
    return dragoman("check", "rule", *ids)


def test_rule_is_explained_with_clause_condition_and_fix():
    done = explain("acp-wire-001", "ACP-FS-101")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.split("\n\n")
    assert first == (
        "ACP-WIRE-001 Nothing but messages on stdout\n"
        "  level     must, for agents\n"
        "  clause    https://agentclientprotocol.com/protocol/v1/transports#stdio\n"
        "  clause    https://agentclientprotocol.com/protocol/v2/transports#stdio\n"
        "  needs     any line from the agent\n"
        "  fix       Send logs, banners and progress to stderr. Use stdout only for JSON-RPC."
    )
    assert second.startswith("ACP-FS-101 ")


def test_unknown_rule_is_a_usage_error_with_a_suggestion():
    done = explain("ACP-WIRE-01")
    assert done.returncode == 2
    assert "there is no rule 'ACP-WIRE-01'; did you mean ACP-WIRE-" in done.stderr


def test_all_rules_are_listed_without_an_id():
    done = explain()
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(RULES)


def test_rule_without_a_similar_one_points_to_the_list():
    assert "there is no rule 'XYZ'; run `dragoman check rule` to list them" in explain("XYZ").stderr
