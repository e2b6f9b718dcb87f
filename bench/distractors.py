"""Ten thousand tools that are never the right one: forty trades, ten objects of each, twenty-five actions.

They look like the tools of real servers, with a name in snake or camel case, one or two sentences, an ID and a few
parameters. None has the meaning of a right tool, because no object shares a word with the name of a right tool (a test
checks this) and every description names the object of its trade.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

DATA = Path(__file__).parent / "data" / "search"

DEEDS = (
    ("list", "List all {things} of the {trade}, optionally filtered by state."),
    ("get", "Get one {thing} with all of its details."),
    ("create", "Create a new {thing} in the {trade} system and return its id."),
    ("update", "Update fields of an existing {thing}. Fields that are left out stay as they are."),
    ("delete", "Delete a {thing} permanently. This cannot be undone."),
    ("search", "Search {things} by free text."),
    ("export", "Export {things} as CSV or XLSX for a given period."),
    ("import", "Import {things} from an uploaded CSV into the {trade} system."),
    ("approve", "Approve a pending {thing} on behalf of the current user."),
    ("reject", "Reject a pending {thing} and give a reason."),
    ("assign", "Assign a {thing} to a member of staff."),
    ("schedule", "Schedule a {thing} for a date and time in the {trade}."),
    ("cancel", "Cancel a planned {thing} and inform everyone who is concerned."),
    ("validate", "Check that a {thing} is complete and follows the rules of the {trade}."),
    ("compare", "Compare two {things} side by side and highlight what differs."),
    ("count", "Count {things}, grouped by type, state or month."),
    ("duplicate", "Make a copy of a {thing} under a new name."),
    ("archive", "Archive {things} that are older than a date."),
    ("track", "Follow where a {thing} is now and what happened to it so far."),
    ("notify", "Notify the people in charge of a {thing} by text message."),
    ("print", "Print the label or form of a {thing} on the printer of the {trade}."),
    ("audit", "Show who changed a {thing}, when, and what it was before."),
    ("estimate", "Estimate the cost and the duration of a {thing}."),
    ("reserve", "Reserve a {thing} for somebody until a given day."),
    ("inspect", "Record the result of an inspection of a {thing}, with remarks."),
)
EXTRAS = (
    {"state": {"type": "string", "enum": ["open", "done", "blocked"], "description": "Only in this state"}},
    {"limit": {"type": "integer", "description": "Maximum number of results"}},
    {"note": {"type": "string", "description": "Remark for colleagues"}},
    {"date": {"type": "string", "format": "date", "description": "Day, as YYYY-MM-DD"}},
)


class Tool(msgspec.Struct, frozen=True, rename={"schema": "inputSchema"}):
    """Build a tool as in `tools/list`, with its server's name."""

    server: str
    name: str
    description: str
    schema: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.server}/{self.name}"


def make_distractors() -> list[Tool]:
    """Return the tools in a fixed order."""
    return [tool for trade, things in read_trades().items() for thing in things for tool in _tools(trade, thing)]


def read_trades() -> dict[str, list[str]]:
    return msgspec.json.decode((DATA / "trades.json").read_bytes(), type=dict[str, list[str]])


def _tools(trade: str, thing: str) -> Iterator[Tool]:
    for number, (deed, description) in enumerate(DEEDS):
        words = [deed, *thing.split()]
        in_camel_case = len(trade) % 3 == 0
        name = words[0] + "".join(word.title() for word in words[1:]) if in_camel_case else "_".join(words)
        identifier = {f"{thing.replace(' ', '_')}_id": {"type": "string", "description": f"Which {thing}"}}
        properties = identifier | EXTRAS[(number + len(thing)) % len(EXTRAS)]
        yield Tool(
            server=trade,
            name=name,
            description=description.format(thing=thing, things=_plural(thing), trade=trade),
            schema={"type": "object", "properties": properties, "required": list(identifier)},
        )


def _plural(thing: str) -> str:
    return f"{thing[:-1]}ies" if thing.endswith("y") and thing[-2] not in "aeiou" else f"{thing}s"
