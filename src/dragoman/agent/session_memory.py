"""The facts about a session that its log restores: title, tokens, the program's state, the choices of the client."""

import math
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from dragoman.agent.usage import TokenUsage
from dragoman.errors import DragomanError
from dragoman.protocol import v1

MAX_STATE_BYTES = 1 << 20
"""The state is written at the end of every turn that changed it; larger data belongs into a file of the program."""


class StateUnusable(DragomanError):
    """`session.state` cannot be saved: it is no JSON, or too large. It is that of the last turn again."""


class ClientChoices(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The choices of the client about a session: a `client` record of the log, with all of them."""

    titled: bool = False
    """Whether the title is the client's: the agent does not replace it by one that it makes."""
    archived: bool = False
    """Whether lists leave the session out unless they are asked for archived ones."""
    system_prompt: v1.SystemPrompt | None = None
    """The instructions of the client for the model."""


class SessionMemory:
    """The facts about a session that its log restores."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.title: str | None = None
        self.choices = ClientChoices()
        self.message_count = 0
        """The messages of the person and of the agent that have words; commands and their answers are none."""
        self.usage = TokenUsage(0, 0)
        self._saved_state = b"{}"

    def restore_state(self, data: bytes) -> None:
        """Take the state of the log."""
        self._saved_state = data
        self.state = msgspec.json.decode(data)

    def encode_state(self) -> bytes | None:
        """Return the state if it has changed since it was saved; raises StateUnusable, and the change is undone."""
        try:
            encoded = msgspec.json.encode(self.state, order="deterministic")
            # A set or a date has a JSON form, and would come back as another type.
            is_same = encoded == self._saved_state or msgspec.json.decode(encoded) == self.state
        except (TypeError, ValueError, RecursionError) as error:
            raise self._refuse_state(_find_foreign(self.state) or str(error)) from None
        if not encoded.startswith(b"{"):
            raise self._refuse_state(f"it is no dict, but {type(self.state).__name__}")
        if not is_same and (foreign := _find_foreign(self.state)) is not None:
            raise self._refuse_state(foreign)
        if len(encoded) > MAX_STATE_BYTES:
            raise self._refuse_state(f"it has {len(encoded):,} bytes, and the limit is {MAX_STATE_BYTES:,}")
        if encoded == self._saved_state:
            return None
        self._saved_state = encoded
        return encoded

    def _refuse_state(self, problem: str) -> StateUnusable:
        self.restore_state(self._saved_state)
        return StateUnusable(f"session.state cannot be saved, so the changes of this turn are undone: {problem}")


def _find_foreign(state: Any) -> str | None:
    """Return the problem of a value in the state that JSON does not have; None when there is none."""
    waiting: list[tuple[str, Any]] = [("session.state", state)]
    seen: set[int] = set()  # containers are looked at once, because they may contain themselves
    while waiting:
        path, value = waiting.pop()
        identity = id(value)
        match value:
            case None | str() | int():
                continue
            case float():
                if not math.isfinite(value):
                    return f"{path} is {value}, which JSON does not have"
                continue
            case list() | tuple():
                parts = list(enumerate(cast("Sequence[Any]", value)))
            case dict():
                parts = list(cast("dict[Any, Any]", value).items())
                for key, _ in parts:
                    if not isinstance(key, str):
                        return f"{path} has the key {key!r}; keys of JSON are str"
            case _:
                return f"{path} is {type(value).__name__}; JSON has str, int, float, bool, None, list and dict"
        if identity not in seen:
            seen.add(identity)
            waiting += [(f"{path}[{key!r}]", part) for key, part in parts]
    return None


def turn_end(memory: SessionMemory, outcome: str, state: bytes | None = None) -> bytes:
    """Make the record that ends a turn, with the summary of the session for lists, and the state if it has changed."""
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
