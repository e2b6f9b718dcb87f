"""Terminals that viewers made for the agent: each belongs to the viewer that made it, and to no other.

Clients number their terminals, each for itself, so two of them on one session have the same ids soon. The agent is told
the viewer's own id where that is free, and else one of ours. What it says of a terminal by that id is told to the
viewer by its own, and the other terminal, whose id that is at the agent, by ours.
"""

import re
from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import encode, fields_of, session_of, string_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.bridge.hub.viewer import Viewer

MAKES = "terminal/create"

_NAMED = re.compile(rb'("terminalId"\s*:\s*)("(?:[^"\\]|\\.)*+")', re.DOTALL)
"""A terminal, wherever a message names one: inside a string the quotes would not be bare."""


class Terminals:
    """Knows whose each terminal of the agent is."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], Viewer | None] = {}
        """By session and id at the agent; None for those of viewers that have left."""

    def note_made(self, params: Raw, answer: bytes, viewer: "Viewer") -> bytes:
        """Remember who answered that it made a terminal, and give the answer as the agent is to have it."""
        fields = fields_of(Raw(answer))
        result = fields_of(fields.get("result", UNSET))
        own, session_id = string_of(result.get("terminalId")), session_of(params)
        if own is None or session_id is None:
            return answer
        id_ = self._free_id(session_id, own, viewer)
        self._holders[session_id, id_] = viewer
        if id_ == own:
            return answer
        names = viewer.terminal_names.setdefault(session_id, {})
        names[id_] = own
        names.setdefault(own, id_)
        return encode({**fields, "result": {**result, "terminalId": id_}})

    def holder(self, params: Raw) -> "Viewer | None":
        """Say who has the terminal that a request of the agent is about."""
        session_id, id_ = session_of(params), string_of(fields_of(params).get("terminalId"))
        return self._holders.get((session_id or "", id_ or ""))

    def forget(self, viewer: "Viewer") -> None:
        """Take note that a viewer is gone, and its terminals with it."""
        for key, holder in self._holders.items():
            if holder is viewer:
                self._holders[key] = None

    def clear(self) -> None:
        """Forget all: the agent that had them is gone."""
        self._holders.clear()

    def _free_id(self, session_id: str, own: str, viewer: "Viewer") -> str:
        id_, number = own, 1
        while self._holders.get((session_id, id_), viewer) is not viewer or self._is_other(
            session_id, id_, own, viewer
        ):
            number += 1
            id_ = f"{own}~{number}"
        return id_

    def _is_other(self, session_id: str, id_: str, own: str, viewer: "Viewer") -> bool:
        """Tell whether the agent knows another terminal of the same viewer by this id."""
        return viewer.terminal_names.get(session_id, {}).get(id_, own) != own


def translate(line: bytes, names: "Mapping[str, str]") -> bytes:
    """Have a message of the agent name terminals as its viewer does."""
    return _NAMED.sub(partial(_rename, names), line) if b'"terminalId"' in line else line


def _rename(names: "Mapping[str, str]", found: "re.Match[bytes]") -> bytes:
    name = names.get(string_of(Raw(found[2])) or "")
    return found[0] if name is None else found[1] + encode(name)
