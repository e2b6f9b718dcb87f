"""An agent that plays a part. It answers the requests that a client needs, and passes each prompt to the part.

An adversary with every capability also answers logins, stores sessions, and has modes and options.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from dragoman import __version__
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, decode_object, offered, part, text
from dragoman.errors import ErrorCode

CAPABILITIES: Object = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
    "auth": {"logout": {}},
}
CAPABILITIES_OF_V2: Object = {
    "session": {
        "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
        "additionalDirectories": {},
    }
}
AUTH_METHODS: list[Object] = [{"id": "check-login", "name": "A login that always succeeds"}]
MODES = ("ask", "work")
MODELS = ("small", "large")
EARLIER = "/dragoman-check"
"""The directory of sessions from before the client connected."""

FIRST_PAGE = 1


class ErrorAnswerError(Exception):
    """The answer to a request is an error."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


class AdversarySessions:
    """The sessions of one client, with their modes and options."""

    def __init__(self) -> None:
        self.is_v2 = False
        """Whether version 2 of the protocol was agreed."""
        self.cancellable: dict[str, asyncio.Event] = {}
        """The version 2 tool calls and terminals that can currently be cancelled, by id."""
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
            "auth/login": self._authenticate,
            "auth/logout": lambda _: {},
        }

    def open(self, session_id: str, cwd: str) -> Object:
        """Add a new session and return its settings. Its directory also gets an earlier session."""
        if cwd not in self._sessions.values():
            self._sessions[f"check-earlier-{uuid.uuid4()}"] = cwd
        self._sessions[session_id] = cwd
        return self._settings(session_id)

    def _settings(self, session_id: str) -> Object:
        values = self._values.setdefault(session_id, {"mode": MODES[0], "model": MODELS[0]})
        if self.is_v2:
            settings = (("mode", MODES), ("model", MODELS))
            return {"configOptions": [_option(name, each, values[name], "configId") for name, each in settings]}
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
            raise ErrorAnswerError(ErrorCode.RESOURCE_NOT_FOUND, "there is no such session")
        return session_id

    def _authenticate(self, params: Any) -> Object:
        if text(params, "methodId") != AUTH_METHODS[0]["id"]:
            raise ErrorAnswerError(ErrorCode.INVALID_PARAMS, "there is no such method")
        return {}

    def _list(self, params: Any) -> Object:
        cwd, cursor = text(params, "cwd"), text(params, "cursor")
        if cursor not in (None, self._cursor):
            raise ErrorAnswerError(ErrorCode.INVALID_PARAMS, "there is no such cursor")
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
            raise ErrorAnswerError(ErrorCode.INVALID_PARAMS, "there is no such option or value")
        self._values[session_id][name] = value


def _option(name: str, values: tuple[str, ...], current: str, id_field: str = "id") -> Object:
    options = [{"value": each, "name": each} for each in values]
    return {
        "type": "select",
        id_field: name,
        "name": name,
        "category": name,
        "currentValue": current,
        "options": options,
    }


ANSWER_TIMEOUT_S = 10.0
"""Time for a client to answer. The user may have to decide, but a program answers immediately."""


class AdversaryChannel(Protocol):
    """Carries lines to and from the client, and records them."""

    def send(self, data: bytes) -> None:
        """Send bytes unchanged."""
        ...

    async def read(self) -> bytes | None:
        """Wait for the next line. Return None when the client has disconnected."""
        ...

    def record(self, sender: Any, line: bytes = b"", event: str = "") -> None:
        """Record a line or an event."""
        ...

    async def die(self) -> None:
        """Exit immediately."""
        ...


PromptHandler = Callable[["Player", str], Awaitable[str]]
"""Handles one prompt of a session and returns the stop reason."""


class Part(msgspec.Struct, frozen=True):
    """A part of an adversary: its version, its capabilities and its turns. The last turn is repeated."""

    name: str
    turns: Sequence[PromptHandler]
    version: int = 1
    is_generous: bool = False
    """Whether it has every capability."""
    greets_after_s: float = 0.0
    """The delay before it answers `initialize`, which shows whether a client waits."""


class Player:
    """Plays one part with one client."""

    def __init__(self, channel: AdversaryChannel, role: Part, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self.channel = channel
        self.capabilities: Object = {}
        self.cwd = ""
        self.cancelled = asyncio.Event()
        self._part = role
        self._sessions = AdversarySessions()
        self._answer_timeout_s = answer_timeout_s
        self._prompts = 0
        self._last_id = 0
        self._calls: dict[Any, asyncio.Future[Object]] = {}
        self._turns: set[asyncio.Task[None]] = set()

    async def play(self) -> None:
        """Play until the client disconnects."""
        async with asyncio.TaskGroup() as self._tasks:
            while (line := await self.channel.read()) is not None:
                self.channel.record("client", line or b"\n")
                self._receive(line)
            for turn in self._turns:
                turn.cancel()

    # ── for the turns of a part ──────────────────────────────────────────────────────────────────────

    @property
    def is_v2(self) -> bool:
        """Return whether version 2 of the protocol was agreed."""
        return self._sessions.is_v2

    def offers(self, path: str) -> bool:
        """Return whether the client advertised a capability."""
        return offered(self.capabilities, path)

    def send(self, line: bytes) -> None:
        """Send a line unchanged."""
        self.channel.record("agent", line)
        self.channel.send(line + b"\n")

    def notify(self, method: str, params: Object) -> None:
        """Send a notification."""
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def update(self, session_id: str, update: str, /, **fields: Any) -> None:
        """Send a `session/update`."""
        self.notify("session/update", {"sessionId": session_id, "update": {"sessionUpdate": update, **fields}})

    def say(self, session_id: str, text: str) -> None:
        """Send a piece of the answer."""
        message: Object = {"messageId": f"said-{session_id}-{self._prompts}"} if self.is_v2 else {}
        self.update(session_id, "agent_message_chunk", **message, content={"type": "text", "text": text})

    def send_state(self, session_id: str, state: str, **fields: Any) -> None:
        """Send the state of a version 2 session."""
        if self.is_v2:
            self.update(session_id, "state_update", state=state, **fields)

    def begin(self, method: str, params: Object, request_id: str | None = None) -> asyncio.Future[Object]:
        """Send a request. The future returns the whole response message."""
        self._last_id += 1
        id_: str | int = self._last_id if request_id is None else request_id
        call: asyncio.Future[Object] = asyncio.get_running_loop().create_future()
        self._calls[id_] = call
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))
        return call

    async def ask(self, method: str, params: Object, request_id: str | None = None) -> Object | None:
        """Send a request and wait for the response. On a timeout record an event and return None."""
        return await self.wait(self.begin(method, params, request_id))

    async def wait(self, call: asyncio.Future[Object], timeout_s: float | None = None) -> Object | None:
        """Wait for a response. On a timeout record an event and return None."""
        timeout_s = timeout_s or self._answer_timeout_s
        try:
            return await asyncio.wait_for(asyncio.shield(call), timeout_s)
        except TimeoutError:
            self.channel.record("client", event=f"waited {timeout_s:g}")
            return None

    @contextmanager
    def cancellable(self, item_id: str) -> Generator[asyncio.Event]:
        """Allow the client to cancel a tool call or a terminal while the context is open.

        Yield the event set by a cancel.
        """
        items = self._sessions.cancellable
        items[item_id] = asyncio.Event()
        try:
            yield items[item_id]
        finally:
            del items[item_id]

    # ── answers to the client ────────────────────────────────────────────────────────────────────

    def _receive(self, line: bytes) -> None:
        fields = decode_object(line)
        if fields is None:
            return
        method = fields.get("method")
        if not isinstance(method, str):
            self._receive_answer(fields)
        elif "id" not in fields:
            if method == "session/cancel":
                self.cancelled.set()
        else:
            self._answer(fields["id"], method, fields.get("params"))

    def _receive_answer(self, fields: Object) -> None:
        id_ = fields.get("id")
        call = self._calls.pop(id_, None) if isinstance(id_, str | int) else None
        if call is not None and not call.done():
            call.set_result(fields)

    def _answer(self, request_id: Any, method: str, params: Any) -> None:
        """Answer a client's request.

        Only a generous part answers the methods beyond the basic ones. The other parts refuse them.
        """
        match method:
            case "initialize":
                asked = part({"params": params}, "params").get("protocolVersion")
                self._sessions.is_v2 = self._part.version == 2 and isinstance(asked, int) and asked >= 2
                self.capabilities = part(params, "capabilities" if self.is_v2 else "clientCapabilities")
                self._tasks.create_task(self._greet(request_id))
            case "session/resume" if self.is_v2 and self._part.is_generous:
                self.send_state(text(params, "sessionId") or "", "idle")
                self._call_handler(request_id, method, params)
            case "session/new":
                self._result(request_id, self._open(text(params, "cwd") or ""))
            case "session/prompt":
                turn = self._tasks.create_task(self._prompt(request_id, text(params, "sessionId") or ""))
                self._turns.add(turn)
                turn.add_done_callback(self._turns.discard)
            case "tool_call/cancel" | "terminal/cancel" if self.is_v2:
                self._cancel_item(request_id, text(params, "toolCallId") or text(params, "terminalId") or "")
            case _ if self._part.is_generous and method in self._sessions.handlers:
                self._call_handler(request_id, method, params)
            case _:
                self._error(request_id, ErrorCode.METHOD_NOT_FOUND, "Method not found")

    async def _greet(self, request_id: Any) -> None:
        await asyncio.sleep(self._part.greets_after_s)
        self._result(request_id, self._greeting())

    def _cancel_item(self, request_id: Any, item_id: str) -> None:
        cancelled = self._sessions.cancellable.get(item_id)
        if cancelled is None:
            self._error(request_id, ErrorCode.INVALID_PARAMS, "nothing with this id can be cancelled now")
            return
        cancelled.set()
        self._result(request_id, {})

    def _call_handler(self, request_id: Any, method: str, params: Any) -> None:
        try:
            self._result(request_id, self._sessions.handlers[method](params))
        except ErrorAnswerError as refused:
            self._error(request_id, refused.code, str(refused))

    def _open(self, cwd: str) -> Object:
        self.cwd = cwd
        session_id = f"check-{uuid.uuid4()}"
        settings = self._sessions.open(session_id, cwd)
        return {"sessionId": session_id, **(settings if self._part.is_generous else {})}

    def _greeting(self) -> Object:
        is_generous = self._part.is_generous
        strange = {"_meta": {f"{INVENTED}capability": {"level": 3}}}
        if self.is_v2:
            offered: Object = CAPABILITIES_OF_V2 if is_generous else {"session": {}}
            methods = [{"type": "agent", "methodId": each["id"], "name": each["name"]} for each in AUTH_METHODS]
            return {
                "protocolVersion": 2,
                "capabilities": {**offered, **strange},
                "info": {"name": "dragoman-adversary", "title": "dragoman check", "version": __version__},
                "authMethods": methods if is_generous else [],
            }
        return {
            "protocolVersion": 1 if self._part.version == 2 else self._part.version,
            "agentCapabilities": {**CAPABILITIES, **strange} if is_generous else strange,
            "agentInfo": {"name": "dragoman-adversary", "title": "dragoman check", "version": __version__},
            "authMethods": AUTH_METHODS if is_generous else [],
        }

    async def _prompt(self, request_id: Any, session_id: str) -> None:
        turns = self._part.turns
        turn = turns[min(self._prompts, len(turns) - 1)]
        self._prompts += 1
        self.cancelled.clear()
        if self.is_v2:
            await self._work(request_id, session_id, turn)
            return
        try:
            reason = await turn(self, session_id)
        except ErrorAnswerError as failed:
            self._error(request_id, failed.code, str(failed))
            return
        self._result(request_id, {"stopReason": reason})
        if reason == "end_turn":
            self.say(session_id, "(said after the end of the turn)")

    async def _work(self, request_id: Any, session_id: str, turn: PromptHandler) -> None:
        """Accept a version 2 prompt, work on it, and send a message after the session is idle."""
        message_id = f"asked-{uuid.uuid4()}"
        self._result(request_id, {"messageId": message_id})
        self.update(session_id, "user_message", messageId=message_id)
        self.send_state(session_id, "running")
        try:
            reason = await turn(self, session_id)
        except ErrorAnswerError as failed:
            error = {"code": failed.code, "message": str(failed)}
            self.send_state(session_id, "idle", stopReason="error", error=error)
            return
        self.send_state(session_id, "idle", stopReason=reason)
        self.send_state(session_id, "idle", stopReason=reason)  # a snapshot, not a second end
        if reason == "end_turn":
            self.say(session_id, "(said while the session is idle)")

    def _result(self, request_id: Any, result: Object) -> None:
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result}))

    def _error(self, request_id: Any, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error}))
