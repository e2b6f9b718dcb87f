"""Sessions in the formats of evaluations, as text."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.client.export import to_atif, to_openai
from dragoman.client.session_trajectory import SessionTrajectory
from dragoman.errors import DragomanError
from dragoman.text import escape_json

TRAJECTORY_FORMATS: dict[str, Callable[[SessionTrajectory], Any]] = {"atif": to_atif, "openai": to_openai}


class NothingToExport(DragomanError):
    """There is no session with any step."""

    def __init__(self) -> None:
        super().__init__("nothing was said there, so there is nothing to export; name a session that was prompted")


def write_trajectories(sessions: Sequence[SessionTrajectory], kind: str) -> str:
    """Return one session as a JSON document, or several as one a line; raises NothingToExport."""
    convert = TRAJECTORY_FORMATS[kind]
    documents = [msgspec.json.encode(convert(session)) for session in sessions if session.steps]
    if not documents:
        raise NothingToExport
    if len(documents) == 1:
        return escape_json(msgspec.json.format(documents[0], indent=2).decode()) + "\n"
    return "".join(f"{escape_json(document.decode())}\n" for document in documents)
