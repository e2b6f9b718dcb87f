"""Our answers to the requests of an agent: permissions, files, terminals and elicitations."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, parts
from dragoman.check.rule import Version
from dragoman.errors import ErrorCode
from dragoman.protocol.permission_options import find_default

PermissionAnswer = Literal["allow", "reject", "hold", "unknown outcome", "unknown option"]
"""The last two answers are unknown to every agent, and allow nothing."""

OUTPUT = "checked\n"
USER_DELAY_S = 0.05
"""Shortest time for a user to decide about a URL. The request stays open that long."""
ALL_SERVICES = frozenset({"fs", "terminal", "elicitation"})
"""All optional client services. A client without any of them also supports no updates that need a capability."""
_EXIT = {"exitCode": 0, "signal": None}


class _RefusedRequestError(Exception):
    """The answer to a request is an error."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


class AnswerSender(Protocol):
    """The connection that sends the answers."""

    def answer(self, request_id: Any, result: Any) -> None:
        """Answer a request."""
        ...

    def refuse(self, request_id: Any, code: int, message: str) -> None:
        """Answer a request with an error."""
        ...


class ClientServices:
    """Answers an agent's requests: permissions as configured, files below `root`, and commands that are never run."""

    def __init__(self, root: Path, without: frozenset[str] = frozenset(), version: Version = 1) -> None:
        self.permission: PermissionAnswer = "allow"
        self.pause_s = 0.0
        """The time that the user needs to answer a permission request."""
        self.permission_count = 0
        """The number of permission requests so far."""
        self.held: list[Any] = []
        """Ids of unanswered permission requests."""
        self._root = root
        self._without = without if version == 1 else without | {"fs", "terminal"}
        self._version = version
        self._terminals = 0
        self._handlers: dict[str, tuple[str, Callable[[Object], Object]]] = {
            "fs/read_text_file": ("fs", self._read),
            "fs/write_text_file": ("fs", self._write),
            "terminal/create": ("terminal", self._create_terminal),
            "terminal/output": ("terminal", _always({"output": OUTPUT, "truncated": False, "exitStatus": _EXIT})),
            "terminal/wait_for_exit": ("terminal", _always(_EXIT)),
            "terminal/kill": ("terminal", _always({})),
            "terminal/release": ("terminal", _always({})),
            "elicitation/create": ("elicitation", _always({"action": "decline"})),
        }

    @property
    def capabilities(self) -> Object:
        """Our capabilities for `initialize`, with one that does not exist."""
        if self._version == 2:
            modes: Object = {} if "elicitation" in self._without else {"elicitation": {"form": {}, "url": {}}}
            return {**modes, "_meta": {"dragoman.check": {"unknown": True}}}
        offered: Object = {
            "fs": {"readTextFile": "fs" not in self._without, "writeTextFile": "fs" not in self._without},
            "terminal": "terminal" not in self._without,
            "_meta": {"dragoman.check": {"unknown": True}},
        }
        if not self._without >= ALL_SERVICES:
            offered["session"] = {"notices": {}, "compaction": {}}
        if "elicitation" not in self._without:
            offered["elicitation"] = {"form": {}, "url": {}}
        return offered

    def handle(self, sender: AnswerSender, request_id: Any, method: str, params: Any) -> None:
        """Answer a request, or hold it until `cancel_held`."""
        try:
            if method == "session/request_permission":
                self._answer_permission(sender, request_id, params)
                return
            answer = self._find(method)(_object(params))
            if method == "elicitation/create" and _object(params).get("mode") == "url":
                asyncio.get_running_loop().call_later(USER_DELAY_S, sender.answer, request_id, answer)
            else:
                sender.answer(request_id, answer)
        except _RefusedRequestError as refused:
            sender.refuse(request_id, refused.code, refused.message)
        except (OSError, ValueError, TypeError) as error:
            sender.refuse(request_id, ErrorCode.INVALID_PARAMS, f"this cannot be done: {error}")

    def withdraw(self, sender: AnswerSender, request_id: Any) -> None:
        """Answer a permission request that the agent has withdrawn."""
        if self._version == 2 and request_id in self.held:
            self.held.remove(request_id)
            sender.answer(request_id, {"outcome": {"outcome": "cancelled"}})

    def cancel_held(self, sender: AnswerSender) -> None:
        """Answer all held permission requests, as a client does after it cancelled the turn."""
        for request_id in self.held:
            sender.answer(request_id, {"outcome": {"outcome": "cancelled"}})
        self.held.clear()

    def _find(self, method: str) -> Callable[[Object], Object]:
        capability, handle = self._handlers.get(method, (method, None))
        if handle is None or capability in self._without:
            raise _RefusedRequestError(ErrorCode.METHOD_NOT_FOUND, f"{method} is not offered")
        return handle

    def _answer_permission(self, sender: AnswerSender, request_id: Any, params: Any) -> None:
        self.permission_count += 1
        if self.permission == "hold":
            self.held.append(request_id)
            return
        if self.permission == "unknown outcome":
            sender.answer(request_id, {"outcome": {"outcome": f"_{INVENTED}outcome"}})
            return
        if self.permission == "unknown option":
            sender.answer(request_id, {"outcome": {"outcome": "selected", "optionId": f"{INVENTED}option"}})
            return
        options = parts(_object(params), "options")
        kinds = [str(each.get("kind", "")) for each in options]
        position = find_default(kinds, self.permission)
        if position is None:  # an "always" would outlast the check
            position = find_default(kinds, "reject")
        if position is None:
            raise _RefusedRequestError(
                ErrorCode.INVALID_PARAMS, f"the request has no option to {self.permission} it once"
            )
        answer = {"outcome": {"outcome": "selected", "optionId": options[position].get("optionId")}}
        if self.pause_s:
            asyncio.get_running_loop().call_later(self.pause_s, sender.answer, request_id, answer)
        else:
            sender.answer(request_id, answer)

    def _path(self, params: Object) -> Path:
        path = Path(str(params.get("path", "")))
        if not path.is_absolute() or not path.resolve().is_relative_to(self._root):
            raise _RefusedRequestError(
                ErrorCode.INVALID_PARAMS, f"{path} is not an absolute path below the session's directory"
            )
        return path

    def _read(self, params: Object) -> Object:
        path = self._path(params)
        if not path.is_file():
            raise _RefusedRequestError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no file {path}")
        lines = path.read_text(errors="replace").splitlines(keepends=True)
        first = max(int(params.get("line") or 1), 1) - 1
        limit = params.get("limit")
        return {"content": "".join(lines[first : None if limit is None else first + int(limit)])}

    def _write(self, params: Object) -> Object:
        path = self._path(params)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(params.get("content", "")))
        return {}

    def _create_terminal(self, _params: Object) -> Object:
        self._terminals += 1
        return {"terminalId": f"check-terminal-{self._terminals}"}


def _always(answer: Object) -> Callable[[Object], Object]:
    return lambda _: answer


def _object(value: Any) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}
