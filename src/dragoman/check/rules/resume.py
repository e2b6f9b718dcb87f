"""Rules on resuming sessions."""

from dragoman.check.rule import Rule

RULES = (
    Rule(
        id="ACP-RESUME-001",
        title="Resuming a session does not replay it",
        page="session-setup",
        section="resuming-a-session",
        level="must",
        role="agent",
        exercised="session/resume of a session that was prompted before",
        fix="Restore the context silently; clients that want a replay call session/load.",
        field=13,
    ),
    Rule(
        id="ACP-RESUME-002",
        title="Resuming a session that never was is refused",
        page="session-setup",
        section="resuming-a-session",
        level="should",
        role="agent",
        exercised="session/resume with an id that nobody issued",
        fix="Answer an unknown session with an error.",
        field=19,
    ),
    Rule(
        id="ACP-RESUME-101",
        title="session/resume is called only where it is advertised",
        page="session-setup",
        section="resuming-sessions",
        level="must",
        role="client",
        exercised="session/resume",
        fix="Look for sessionCapabilities.resume first.",
        field=14,
    ),
)
