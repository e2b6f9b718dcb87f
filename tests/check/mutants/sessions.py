"""The sessions of the clean agent, one file each, so that they survive the process."""

import json
import os
import threading
import time
from typing import Any

Object = dict[str, Any]

MODES = ("ask", "work")
MODELS = ("small", "large")
EARLIER = 3
"""Number of initial sessions, so that a list has pages."""


class Session:
    """A session and its turn, if one is running."""

    def __init__(self, session_id: str, cwd: str, created: int = 0, history: list[Object] | None = None) -> None:
        self.id = session_id
        self.cwd = cwd
        self.created = created or time.time_ns()
        self.history = history or []
        self.mode, self.model, self.fast = MODES[0], MODELS[0], False
        self.prompt_id: Any = None
        self.calls = 0
        self.cancelled = threading.Event()
        self.idle = threading.Event()
        self.idle.set()

    def settings(self) -> Object:
        modes = {"currentModeId": self.mode, "availableModes": [{"id": each, "name": each} for each in MODES]}
        return {"modes": modes, "configOptions": self.options()}

    def options(self) -> list[Object]:
        return [_select("mode", MODES, self.mode), _select("model", MODELS, self.model)]

    def info(self) -> Object:
        return {"sessionId": self.id, "cwd": self.cwd, "title": "A session", "updatedAt": "2026-01-02T03:04:05Z"}


def _select(name: str, values: tuple[str, ...], current: str) -> Object:
    options = [{"value": each, "name": each} for each in values]
    return {
        "type": "select",
        "id": name,
        "name": name,
        "category": name,
        "currentValue": current,
        "options": options,
    }


class SessionFiles:
    """Keeps sessions in a directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        for number in range(1, EARLIER + 1):
            if not os.path.exists(self._path(f"earlier-{number}")):
                self.save(Session(f"earlier-{number}", "/earlier", created=number))

    def save(self, session: Session) -> None:
        kept = {"id": session.id, "cwd": session.cwd, "created": session.created, "history": session.history}
        path = self._path(session.id)
        part = f"{path}.{os.getpid()}.part"
        with open(part, "w") as file:
            json.dump(kept, file)
        os.replace(part, path)

    def find(self, session_id: str) -> Session | None:
        try:
            with open(self._path(session_id)) as file:
                kept = json.load(file)
        except FileNotFoundError:
            return None
        return Session(kept["id"], kept["cwd"], kept["created"], kept["history"])

    def all(self) -> list[Session]:
        """Return all sessions, the newest first."""
        names = [each.removesuffix(".json") for each in os.listdir(self._directory) if each.endswith(".json")]
        found = [session for each in names if (session := self.find(each)) is not None]
        return sorted(found, key=lambda each: -each.created)

    def delete(self, session_id: str) -> None:
        if os.path.exists(self._path(session_id)):
            os.unlink(self._path(session_id))

    def _path(self, session_id: str) -> str:
        return os.path.join(self._directory, f"{session_id}.json")
