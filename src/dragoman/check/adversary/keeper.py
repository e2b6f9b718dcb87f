"""What an agent with every capability answers: logins, sessions that are kept, modes and options."""

import uuid
from collections.abc import Callable
from typing import Any

from dragoman.check.judge.field import text
from dragoman.check.judge.message import Object
from dragoman.errors import ErrorCode

CAPABILITIES: Object = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
    "auth": {"logout": {}},
}
AUTH_METHODS: list[Object] = [{"id": "check-login", "name": "A login that always succeeds"}]
MODES = ("ask", "work")
MODELS = ("small", "large")
EARLIER = "/dragoman-check"
"""The directory of the sessions that were there before the client came."""

FIRST_PAGE = 1


class Refused(Exception):
    """The answer is an error."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


class Keeper:
    """Keeps the sessions of one client."""

    def __init__(self) -> None:
        self._sessions: dict[str, str] = {f"check-earlier-{number}": EARLIER for number in (1, 2)}
        self._cursor = f"check-cursor-{uuid.uuid4()}"
        self._values: dict[str, dict[str, str]] = {}
        self.handlers: dict[str, Callable[[Any], Object]] = {
            "authenticate": self._authenticate,
            "logout": lambda _: {},
            "session/list": self._list,
            "session/load": self._settings_of,
            "session/resume": self._settings_of,
            "session/close": lambda _: {},
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def open(self, session_id: str, cwd: str) -> Object:
        """Keep a new session and return what can be set in it; its directory has another one from before."""
        if cwd not in self._sessions.values():
            self._sessions[f"check-earlier-{uuid.uuid4()}"] = cwd
        self._sessions[session_id] = cwd
        return self._settings(session_id)

    def _settings(self, session_id: str) -> Object:
        values = self._values.setdefault(session_id, {"mode": MODES[0], "model": MODELS[0]})
        modes = [{"id": each, "name": each} for each in MODES]
        return {
            "modes": {"currentModeId": values["mode"], "availableModes": modes},
            "configOptions": [_option("mode", MODES, values["mode"]), _option("model", MODELS, values["model"])],
        }

    def _settings_of(self, params: Any) -> Object:
        return self._settings(self._find(params))

    def _find(self, params: Any) -> str:
        session_id = text(params, "sessionId")
        if session_id is None or session_id not in self._sessions:
            raise Refused(ErrorCode.RESOURCE_NOT_FOUND, "there is no such session")
        return session_id

    def _authenticate(self, params: Any) -> Object:
        if text(params, "methodId") != AUTH_METHODS[0]["id"]:
            raise Refused(ErrorCode.INVALID_PARAMS, "there is no such method")
        return {}

    def _list(self, params: Any) -> Object:
        cwd, cursor = text(params, "cwd"), text(params, "cursor")
        if cursor not in (None, self._cursor):
            raise Refused(ErrorCode.INVALID_PARAMS, "there is no such cursor")
        kept = [{"sessionId": name, "cwd": place} for name, place in self._sessions.items() if cwd in (None, place)]
        if cursor is not None:
            return {"sessions": kept[FIRST_PAGE:]}
        return {"sessions": kept[:FIRST_PAGE], **({"nextCursor": self._cursor} if len(kept) > FIRST_PAGE else {})}

    def _delete(self, params: Any) -> Object:
        self._sessions.pop(text(params, "sessionId") or "", None)
        return {}

    def _set_mode(self, params: Any) -> Object:
        self._set(self._find(params), "mode", MODES, text(params, "modeId"))
        return {}

    def _set_option(self, params: Any) -> Object:
        session_id, name = self._find(params), text(params, "configId")
        self._set(session_id, name or "", MODES if name == "mode" else MODELS, text(params, "value"))
        return {"configOptions": self._settings(session_id)["configOptions"]}

    def _set(self, session_id: str, name: str, allowed: tuple[str, ...], value: str | None) -> None:
        self._settings(session_id)
        if name not in ("mode", "model") or value not in allowed:
            raise Refused(ErrorCode.INVALID_PARAMS, "there is no such option or value")
        self._values[session_id][name] = value


def _option(name: str, values: tuple[str, ...], current: str) -> Object:
    options = [{"value": each, "name": each} for each in values]
    return {"type": "select", "id": name, "name": name, "category": name, "currentValue": current, "options": options}
