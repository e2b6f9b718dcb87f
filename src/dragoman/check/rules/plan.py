"""Rules on plans."""

from dragoman.check.rule import Rule

RULES = (
    Rule(
        id="ACP-PLAN-001",
        title="Plans fit the schema",
        page="agent-plan",
        section="plan-entries",
        level="must",
        role="agent",
        exercised="a plan update",
        fix="Send entries with content, priority (high, medium, low) and status (pending, in_progress, completed).",
        field=10,
    ),
)
