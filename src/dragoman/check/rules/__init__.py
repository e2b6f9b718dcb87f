"""All rules by id. Each module of this package contains the rules of a few areas."""

from collections.abc import Mapping
from importlib import import_module

from dragoman.check.rule import Rule

AREAS: Mapping[str, str] = {
    "WIRE": "Transports and JSON-RPC",
    "HTTP": "Streamable HTTP",
    "WS": "WebSocket",
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
    "MSG": "Messages",
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
"""The areas of the protocol in the order of a conversation, with their usual names."""

REMOTE_AREAS = frozenset({"HTTP", "WS"})
"""The areas of agents at a URL. They are judged by requests and frames, not by a conversation."""

_MODULES = (
    "wire",
    "wire_client",
    "remote",
    "initialization",
    "session_setup",
    "session_list",
    "session_settings",
    "prompt_turn",
    "tool_calls",
    "client_services",
    "content",
    "extensibility",
    "version_2",
)


def _join() -> dict[str, Rule]:
    rules: list[Rule] = [rule for name in _MODULES for rule in import_module(f"{__name__}.{name}").RULES]
    rules.sort(key=lambda rule: rule.id)
    joined = {rule.id: rule for area in AREAS for rule in rules if rule.area == area}
    if len(joined) != len(rules):
        raise ValueError("two rules have the same id, or a rule has an area that is not in AREAS")
    return joined


RULES: Mapping[str, Rule] = _join()
"""Every rule by id, in the order of the areas."""
