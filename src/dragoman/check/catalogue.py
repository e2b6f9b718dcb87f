"""All rules, by id."""

from collections.abc import Mapping
from importlib import import_module

from dragoman.check.rule import Rule

AREAS: Mapping[str, str] = {
    "WIRE": "Transports and JSON-RPC",
    "INIT": "Initialization",
    "AUTH": "Authentication",
    "NEW": "Creating sessions",
    "LOAD": "Loading sessions",
    "RESUME": "Resuming sessions",
    "LIST": "Listing sessions",
    "CLOSE": "Closing sessions",
    "DELETE": "Deleting sessions",
    "MODE": "Session modes",
    "CONFIG": "Session config options",
    "PROMPT": "Prompt turns",
    "CANCEL": "Cancelling turns",
    "TOOL": "Tool calls",
    "PERM": "Permission requests",
    "FS": "File system",
    "TERM": "Terminals",
    "PLAN": "Plans",
    "CMD": "Slash commands",
    "CONTENT": "Content",
    "ELICIT": "Elicitation",
    "EXT": "Extensibility",
    "MCP": "MCP servers",
}
"""The areas in the order of a conversation, with what a reader calls them; each is a file in `rules`."""


def _join() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for area in AREAS:
        for rule in import_module(f"dragoman.check.rules.{area.lower()}").RULES:
            if rule.id in rules or rule.area != area:
                raise ValueError(f"{rule.id} is there twice, or in the wrong file")
            rules[rule.id] = rule
    return rules


RULES: Mapping[str, Rule] = _join()
"""Every rule, by id, in the order of the areas."""
