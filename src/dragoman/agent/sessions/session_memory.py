"""The state of a session that its log restores: title, tokens, the program's state and the client's choices."""

import math
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman.agent.turns.usage import TokenUsage
from dragoman.errors import DragomanError
from dragoman.protocol import v1

MAX_STATE_BYTES = 1 << 20
"""The limit of the state, which is written after every turn that changed it. Store larger data in a file."""


class StateError(DragomanError):
    """`session.state` cannot be saved, because it is not JSON or too large. It was reset to the last saved state."""


class ClientChoices(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The client's choices about a session. A `client` record of the log has all of them."""

    titled: bool = False
    """Whether the client has set the title, so that the agent does not replace it."""
    archived: bool = False
    """Whether the session is archived, so that lists omit it by default."""
    system_prompt: v1.SystemPrompt | None = None
    """The client's instructions for the model."""


class SessionMemory:
    """The state of a session that its log restores."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.title: str | None = None
        self.choices = ClientChoices()
        self.message_count = 0
        """The number of user and agent messages with text. Commands and their answers do not count."""
        self.usage = TokenUsage(0, 0)
        self._saved_state = b"{}"

    def restore_state(self, data: bytes) -> None:
        """Load the state from the log."""
        self._saved_state = data
        self.state = msgspec.json.decode(data)

    def encode_state(self) -> bytes | None:
        """Return the state if it has changed since it was saved. Raises StateError and resets the state."""
        try:
            encoded = msgspec.json.encode(self.state, order="deterministic")
            # A set or a date has a JSON form, but would be restored as another type.
            is_same = encoded == self._saved_state or msgspec.json.decode(encoded) == self.state
        except (TypeError, ValueError, RecursionError) as error:
            raise self._refuse_state(_find_foreign(self.state) or str(error)) from None
        if not encoded.startswith(b"{"):
            raise self._refuse_state(f"it must be a dict, got {type(self.state).__name__}")
        if not is_same and (foreign := _find_foreign(self.state)) is not None:
            raise self._refuse_state(foreign)
        if len(encoded) > MAX_STATE_BYTES:
            raise self._refuse_state(f"it has {len(encoded):,} bytes, and the limit is {MAX_STATE_BYTES:,}")
        if encoded == self._saved_state:
            return None
        self._saved_state = encoded
        return encoded

    def _refuse_state(self, problem: str) -> StateError:
        self.restore_state(self._saved_state)
        return StateError(f"session.state cannot be saved, so the changes of this turn are undone: {problem}")


def _find_foreign(state: Any) -> str | None:
    """Return the problem of a value that JSON cannot represent, or None."""
    waiting: list[tuple[str, Any]] = [("session.state", state)]
    seen: set[int] = set()  # visit containers once, because they may be cyclic
    while waiting:
        path, value = waiting.pop()
        identity = id(value)
        match value:
            case None | str() | int():
                continue
            case float():
                if not math.isfinite(value):
                    return f"{path} is {value}, which JSON cannot represent"
                continue
            case list() | tuple():
                parts = list(enumerate(cast("Sequence[Any]", value)))
            case dict():
                parts = list(cast("dict[Any, Any]", value).items())
                for key, _ in parts:
                    if not isinstance(key, str):
                        return f"{path} has the key {key!r}; JSON keys must be str"
            case _:
                return f"{path} is {type(value).__name__}; JSON supports str, int, float, bool, None, list and dict"
        if identity not in seen:
            seen.add(identity)
            waiting += [(f"{path}[{key!r}]", part) for key, part in parts]
    return None


def turn_end(memory: SessionMemory, outcome: str, state: bytes | None = None) -> bytes:
    """Build the record that ends a turn: the session's summary for lists, and the state if it has changed."""
    end: dict[str, Any] = {
        "event": "end",
        "stopReason": outcome,
        "title": memory.title,
        "messages": memory.message_count,
        "usage": memory.usage,
    }
    if memory.choices.archived:
        end["archived"] = True
    if state is not None:
        end["state"] = msgspec.Raw(state)
    return msgspec.json.encode(end)
