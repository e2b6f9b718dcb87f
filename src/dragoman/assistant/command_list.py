"""The slash commands of our agent: name, description and hint. `commands` has their functions."""

COMMANDS = (
    ("compact", "Summarize the conversation to free context space", None),
    ("mode", "Show or change the mode", "ask|code|plan"),
    ("model", "Show or change the model", "NAME"),
    ("usage", "Show the tokens and the cost of the conversation", None),
    ("context", "Show what the last request to the model contained, and why", None),
    ("include", "Add a tool, a server, a rule, a reference or a skill to the model's context", "NAME"),
    ("exclude", "Undo an /include", "NAME"),
    ("skills", "List the skills", None),
)

COMMAND_NAMES = frozenset(("help", "mcp", *(name for name, _, _ in COMMANDS)))
"""The names that no skill's command can have. The kit adds the first two."""
