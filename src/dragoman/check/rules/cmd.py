"""Rules on slash commands."""

from dragoman.check.rule import Rule

RULES = (
    Rule(
        id="ACP-CMD-001",
        title="Commands fit the schema",
        page="slash-commands",
        section="availablecommand",
        level="must",
        role="agent",
        exercised="an available_commands_update",
        fix="Send availableCommands with name and description, and input with a hint.",
        field=10,
    ),
    Rule(
        id="ACP-CMD-002",
        title="The names of commands differ",
        page="slash-commands",
        section="availablecommand",
        level="should",
        role="agent",
        exercised="an available_commands_update",
        fix="Offer each command once.",
    ),
    Rule(
        id="ACP-CMD-003",
        title="The names of commands have no slash before them",
        page="slash-commands",
        section="availablecommand",
        level="should",
        role="agent",
        exercised="an available_commands_update",
        fix="Send web, not /web: clients put the slash there.",
    ),
)
