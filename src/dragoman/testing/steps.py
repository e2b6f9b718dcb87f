"""The steps of a scripted agent in a turn: plain data, so that a script can be a JSON file."""

from typing import Any

import msgspec

from dragoman.protocol import v1


class Say(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Send a piece of the answer."""

    text: str


class Think(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Send a piece of the reasoning."""

    text: str


class Update(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Send any `session/update`, as JSON and unchecked."""

    update: dict[str, Any]


class AskPermission(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Announce a tool call, ask permission for it, finish it accordingly and say `outcome: …`."""

    title: str = "Edit notes.txt"
    kind: v1.ToolKind = "edit"


class WaitForCancel(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Wait until the turn is cancelled; the turn then ends with `cancelled`."""


class Send(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Write a line to the client as it is, unchecked."""

    line: str


class Exit(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """End the process at once, with a last word on stderr."""

    code: int
    stderr: str = ""


class Stop(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """End the turn with this reason, whether or not the protocol knows it; without it a turn ends with `end_turn`."""

    reason: str


class Fail(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """End the turn with an error."""

    code: int
    data: Any = None


Step = Say | Think | Update | AskPermission | WaitForCancel | Send | Exit | Stop | Fail
TurnScript = list[Step]


def dump_turns(turns: list[TurnScript]) -> str:
    """Return the turns as JSON, for `python -m dragoman.testing`."""
    return msgspec.json.encode(turns).decode()


def load_turns(text: str | bytes) -> list[TurnScript]:
    """Read turns from JSON; raises msgspec.ValidationError."""
    return msgspec.json.decode(text, type=list[TurnScript])
