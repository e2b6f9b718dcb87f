"""Rules on deleting sessions."""

from dragoman.check.rule import Rule

RULES = (
    Rule(
        id="ACP-DELETE-001",
        title="A deleted session is no longer listed",
        page="session-delete",
        section="semantics",
        level="must",
        role="agent",
        exercised="session/delete, then session/list",
        fix="Leave deleted sessions out of session/list.",
    ),
    Rule(
        id="ACP-DELETE-002",
        title="Deleting what is not there succeeds",
        page="session-delete",
        section="semantics",
        level="should",
        role="agent",
        exercised="session/delete with an id that nobody issued, or twice",
        fix="Answer with an empty result when there is nothing to delete.",
    ),
    Rule(
        id="ACP-DELETE-101",
        title="session/delete is called only where it is advertised",
        page="session-delete",
        section="checking-support",
        level="must",
        role="client",
        exercised="session/delete",
        fix="Look for sessionCapabilities.delete first.",
        field=14,
    ),
)
