"""The steps of a scripted agent's turn. They are plain data, so that a script can be a JSON file."""

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
    """Send any `session/update` as JSON, unchecked."""

    update: dict[str, Any]


class AskPermission(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Announce a tool call, request permission, finish the call accordingly and send `outcome: …`."""

    title: str = "Edit notes.txt"
    kind: v1.ToolKind = "edit"


class WaitForCancel(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Wait until the turn is cancelled, then end it with `cancelled`."""


class Send(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """Write a line to the client, unchecked."""

    line: str


class Exit(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """End the process at once, after a line on stderr."""

    code: int
    stderr: str = ""


class Stop(msgspec.Struct, frozen=True, tag=True, tag_field="step"):
    """End the turn with any stop reason, known to ACP or not. Without this step a turn ends with `end_turn`."""

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
    """Read turns from JSON. Raises msgspec.ValidationError."""
    return msgspec.json.decode(text, type=list[TurnScript])
