"""`dragoman check rule`: a rule explained."""

from tests.commands import dragoman


def explain(*ids):
    return dragoman("check", "rule", *ids)


def test_a_rule_is_explained_with_its_clause_its_occasion_and_the_way_to_mend_it():
    done = explain("acp-wire-001", "ACP-FS-101")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.split("\n\n")
    assert first == (
        "ACP-WIRE-001 Nothing but messages on stdout\n"
        "  level     must, for agents\n"
        "  clause    https://agentclientprotocol.com/protocol/v1/transports#stdio\n"
        "  clause    https://agentclientprotocol.com/protocol/v2/transports#stdio\n"
        "  occasion  any line from the agent\n"
        "  fix       Send logs, banners and progress to stderr; keep stdout for JSON-RPC alone."
    )
    assert second.startswith("ACP-FS-101 ")


def test_an_unknown_rule_is_a_usage_error_that_names_the_nearest():
    done = explain("ACP-WIRE-01")
    assert done.returncode == 2
    assert "there is no rule 'ACP-WIRE-01'; did you mean ACP-WIRE-" in done.stderr
