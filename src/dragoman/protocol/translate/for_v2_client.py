"""The translator between a client of version 2 and an agent of version 1."""

import uuid
from collections.abc import Callable
from typing import NamedTuple

from dragoman.protocol.notice import CALLS, TERMINALS
from dragoman.protocol.translate.content import BLOCKS, blocks_to_v1
from dragoman.protocol.translate.envelope import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    OF_V1,
    UNSUPPORTED_VERSION,
    Json,
    Object,
    Translated,
    as_object,
    carry,
    error,
    key_of,
    notification,
    objects_in,
    request,
    result,
    to_agent,
    to_client,
    update,
    without,
)
from dragoman.protocol.translate.questions import elicitation_to_v2, outcome_to_v1, permission_to_v2
from dragoman.protocol.translate.session_for_v2 import SessionForV2Client
from dragoman.protocol.translate.setup import UntranslatableServer, initialize_to_v1, initialized_to_v2, setup_to_v1
from dragoman.protocol.translate.turn import V1TurnState

_RENAMED = {"auth/login": "authenticate", "auth/logout": "logout"}
_REMOVED = ("fs/", "terminal/")
"""Methods of a version 1 client that a version 2 client does not have."""


def _new_id() -> str:
    return str(uuid.uuid4())


class _Call(NamedTuple):
    """A request on its way: the method that its sender used, its session, and the mode that it sets."""

    method: str
    session_id: str
    mode_id: Json = None


class TranslatorForV2Client:
    """Lets a client of version 2 and an agent of version 1 talk; one connection, any number of sessions.

    Each message that comes from a side is given to `from_client` or `from_agent`, and the messages that it returns are
    sent in its place. `make_id` makes the ids of messages that the agent gives none.
    """

    def __init__(self, make_id: Callable[[], str] = _new_id) -> None:
        self._make_id = make_id
        self._sessions: dict[str, SessionForV2Client] = {}
        self._of_client: dict[bytes, _Call] = {}
        self._of_agent: dict[bytes, _Call] = {}
        self._abandoned: set[bytes] = set()
        """The prompts whose session is closed: their answers are told to nobody."""
        self._capabilities: Object = {}
        self._handlers: dict[str, Callable[[Object, Object], Translated]] = {
            "initialize": self._initialize,
            "session/prompt": self._prompt,
            "session/new": self._open,
            "session/fork": self._open,
            "session/resume": self._resume,
            "session/set_config_option": self._set_option,
            "session/close": self._close,
            "session/list": self._list,
            "auth/logout": self._logout,
            "tool_call/cancel": self._cancel_part,
            "terminal/cancel": self._cancel_part,
        }

    def from_client(self, message: Object) -> Translated:
        """Take a message of the client."""
        if "method" not in message:
            return self._answer_of_client(message)
        params = as_object(message.get("params"))
        if "id" not in message:
            return self._notification_of_client(message, params)
        try:
            return self._request_of_client(message, params)
        except UntranslatableServer as bad:
            data = {"path": bad.field, "problem": bad.problem}
            return to_client(error(message["id"], INVALID_PARAMS, f"Invalid params: {bad}", data))

    def from_agent(self, message: Object) -> Translated:
        """Take a message of the agent."""
        if "method" not in message:
            return self._answer_of_agent(message)
        params = as_object(message.get("params"))
        if "id" in message:
            return self._request_of_agent(message, params)
        return self._notification_of_agent(message, params)

    def take_offers(self, session_id: str, response: Object) -> None:
        """Take the modes and options of a session where the client was told them by someone else."""
        self._session(session_id).offers.take(response)

    def forget(self, session_id: str) -> None:
        """Forget a session that the client has left."""
        self._sessions.pop(session_id, None)

    def _session(self, session_id: Json) -> SessionForV2Client:
        name = str(session_id)
        if name not in self._sessions:
            self._sessions[name] = SessionForV2Client(name, self._make_id)
        return self._sessions[name]

    def _pass(self, message: Object, method: str, params: Json, mode_id: Json = None) -> Translated:
        session_id = str(as_object(params).get("sessionId", ""))
        self._of_client[key_of(message["id"])] = _Call(message["method"], session_id, mode_id)
        return to_agent(request(message["id"], method, params))

    def _request_of_client(self, message: Object, params: Object) -> Translated:
        method: str = message["method"]
        handler = self._handlers.get(method)
        if handler is not None:
            return handler(message, params)
        return self._pass(message, _RENAMED.get(method, method), message.get("params"))

    def _initialize(self, message: Object, params: Object) -> Translated:
        return self._pass(message, "initialize", initialize_to_v1(params))

    def _prompt(self, message: Object, params: Object) -> Translated:
        kinds = [each.get("type") for each in objects_in(params.get("prompt"))]
        unknown = [index for index, kind in enumerate(kinds) if kind not in BLOCKS]
        if unknown:
            path = f"params.prompt[{unknown[0]}].type"
            problem = f"there is no content of the type {kinds[unknown[0]]!r}"
            words = f"Invalid params: {path}: {problem}"
            return to_client(error(message["id"], INVALID_PARAMS, words, {"path": path, "problem": problem}))
        if params.get("sessionId") not in self._sessions:  # nothing is told of a session that may not exist
            return self._pass(message, "session/prompt", {**params, "prompt": blocks_to_v1(params.get("prompt"))})
        session = self._session(params.get("sessionId"))
        if session.turn.state is V1TurnState.IDLE:
            session.begin_turn()
        return Translated(*session.turn.prompt(message))

    def _open(self, message: Object, params: Object) -> Translated:
        return self._pass(message, message["method"], _with_system_prompt(setup_to_v1(params)))

    def _list(self, message: Object, params: Object) -> Translated:
        if self._has("list"):
            return self._pass(message, "session/list", params)
        return to_client(result(message["id"], carry({"sessions": []}, OF_V1, {"list": False})))

    def _logout(self, message: Object, params: Object) -> Translated:
        if isinstance(as_object(self._capabilities.get("auth")).get("logout"), dict):
            return self._pass(message, "logout", params)
        words = "Method not found: the agent speaks ACP 1 and has no logout"
        return to_client(error(message["id"], METHOD_NOT_FOUND, words))

    def _cancel_part(self, message: Object, params: Object) -> Translated:
        part = CALLS if message["method"] == "tool_call/cancel" else TERMINALS
        own = as_object(as_object(self._capabilities.get("_meta")).get(part)).get("cancel")
        if isinstance(own, str):
            return self._pass(message, own, params)
        words = "Invalid params: the agent speaks ACP 1, where only session/cancel ends a tool call or a command"
        return to_client(error(message["id"], INVALID_PARAMS, words))

    def _has(self, name: str) -> bool:
        return isinstance(as_object(self._capabilities.get("sessionCapabilities")).get(name), dict)

    def _resume(self, message: Object, params: Object) -> Translated:
        params = _with_system_prompt(setup_to_v1(params))
        cursor, params = params.get("replayFrom"), without(params, "replayFrom")
        can_load = self._capabilities.get("loadSession") is True
        if cursor is not None and (as_object(cursor).get("type") != "start" or not can_load):
            problem = (
                "the agent speaks ACP 1 and cannot replay" if not can_load else 'the only cursor is {"type": "start"}'
            )
            data = {"path": "params.replayFrom", "problem": problem}
            words = f"Invalid params: params.replayFrom: {problem}"
            return to_client(error(message["id"], INVALID_PARAMS, words, data))
        if cursor is None and self._has("resume"):
            return self._pass(message, "session/resume", params)
        if not can_load:
            words = "Method not found: the agent speaks ACP 1 and can neither load nor resume a session"
            return to_client(error(message["id"], METHOD_NOT_FOUND, words))
        session = self._session(params.get("sessionId"))
        session.is_muted = cursor is None
        session.begin_turn()
        return self._pass(message, "session/load", params)

    def _set_option(self, message: Object, params: Object) -> Translated:
        session = self._session(params.get("sessionId"))
        if session.offers.is_mode(params.get("configId")):
            made = {"sessionId": params.get("sessionId"), "modeId": params.get("value")}
            return self._pass(message, "session/set_mode", made, params.get("value"))
        made = params if params.get("type") == "boolean" else without(params, "type")
        return self._pass(message, message["method"], made)

    def _close(self, message: Object, params: Object) -> Translated:
        if self._has("close"):
            return self._pass(message, "session/close", params)
        told = self._forget(str(params.get("sessionId")))
        cancelling = [notification("session/cancel", params)] if told else []
        return Translated([*told, result(message["id"], {})], cancelling)

    def _forget(self, session_id: str) -> list[Object]:
        """Forget a session that is closed, and return what its client is told of the turn."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return []
        if session.turn.state is not V1TurnState.IDLE:
            self._abandoned.add(key_of(session.turn.prompt_id))
        return session.turn.close()

    def _notification_of_client(self, message: Object, params: Object) -> Translated:
        if message["method"] != "$/cancel_request":
            return to_agent(message)
        for session in self._sessions.values():
            if told := session.turn.cancel(params.get("requestId")):
                return to_client(*told)
        return to_agent(message)

    def _answer_of_client(self, message: Object) -> Translated:
        call = self._of_agent.pop(key_of(message.get("id")), None)
        if call is None:
            return to_agent(message)
        told = self._answered(call.session_id, message["id"])
        if call.method == "session/request_permission" and "result" in message:
            message = {**message, "result": outcome_to_v1(as_object(message["result"]))}
        return Translated(told, [message])

    def _answered(self, session_id: str, request_id: Json) -> list[Object]:
        """See a question answered or withdrawn; its session may be closed by then, and stays so."""
        session = self._sessions.get(session_id)
        return [] if session is None else session.turn.answered(request_id)

    def _request_of_agent(self, message: Object, params: Object) -> Translated:
        method = message["method"]
        if method.startswith(_REMOVED):
            words = f"Method not found: the client speaks ACP 2, which has no {method}"
            return to_agent(error(message["id"], METHOD_NOT_FOUND, words))
        session_id = str(params.get("sessionId", ""))
        is_question = method in ("session/request_permission", "elicitation/create") and bool(session_id)
        self._of_agent[key_of(message["id"])] = _Call(method, session_id if is_question else "")
        if method == "session/request_permission":
            session = self._session(session_id)
            title = session.title_of(as_object(params.get("toolCall")).get("toolCallId"))
            params = permission_to_v2(params, title)
        elif method == "elicitation/create":
            params = elicitation_to_v2(params)
        else:
            return to_client(message)
        told = self._session(session_id).turn.question(message["id"]) if is_question else []
        return to_client(*told, {**message, "params": params})

    def _notification_of_agent(self, message: Object, params: Object) -> Translated:
        if message["method"] == "session/update":
            session = self._session(params.get("sessionId"))
            return to_client(*session.take_update(as_object(params.get("update"))))
        if message["method"] == "$/cancel_request":
            call = self._of_agent.get(key_of(params.get("requestId")))
            told = self._answered(call.session_id, params.get("requestId")) if call else []
            return to_client(message, *told)
        return to_client(message)

    def _answer_of_agent(self, message: Object) -> Translated:
        for session in self._sessions.values():
            if session.turn.is_prompt(message.get("id")):
                session.begin_turn()
                return Translated(*session.turn.done(message))
        key = key_of(message.get("id"))
        if key in self._abandoned:
            self._abandoned.discard(key)
            return Translated([], [])
        call = self._of_client.pop(key, None)
        if call is None:  # the answer to a message that was never translated, such as one that is no request
            return to_client(message)
        if "error" in message:
            return self._failure_of_agent(message, call)
        return to_client(*self._result_of_agent(message, call))

    def _failure_of_agent(self, message: Object, call: _Call) -> Translated:
        failure = as_object(message["error"])
        if call.session_id in self._sessions:
            self._sessions[call.session_id].is_muted = False
        if failure.get("code") != NOT_FOUND or not call.session_id:
            return to_client(message)
        if call.method == "session/close":
            return to_client(result(message["id"], {}))
        given = failure.get("data")
        data = {**as_object(given), "sessionId": call.session_id}
        if given is not None and not isinstance(given, dict):
            data["data"] = given
        return to_client({**message, "error": {**failure, "data": data}})

    def _result_of_agent(self, message: Object, call: _Call) -> list[Object]:
        given = as_object(message.get("result"))
        match call.method:
            case "initialize":
                return [self._initialized(message, given)]
            case "session/new" | "session/fork":
                session = self._session(given.get("sessionId"))
                return [{**message, "result": session.offers.take(given)}]
            case "session/resume":
                return self._resumed(message, call, given)
            case "session/set_config_option":
                return [{**message, "result": self._option_set(call, given)}]
            case "session/close":
                return [*self._forget(call.session_id), message]
            case _:
                made = {"messageId": self._make_id()} if call.method == "session/prompt" else {}
                return [{**message, "result": made} if message.get("result") is None or made else message]

    def _resumed(self, message: Object, call: _Call, given: Object) -> list[Object]:
        session = self._session(call.session_id)
        session.is_muted = False
        state = "idle" if session.turn.state is V1TurnState.IDLE else "running"
        snapshot = update(call.session_id, {"sessionUpdate": "state_update", "state": state})
        return [snapshot, {**message, "result": session.offers.take(given)}]

    def _option_set(self, call: _Call, given: Object) -> Object:
        offers = self._session(call.session_id).offers
        if call.mode_id is None:
            return offers.take_options(given)
        offers.take_mode(call.mode_id)
        return {**given, "configOptions": offers.options() or []}

    def _initialized(self, message: Object, given: Object) -> Object:
        version = given.get("protocolVersion")
        if version != 1:
            data = {"requested": 2, "supported": [version] if isinstance(version, int) else []}
            words = f"Unsupported protocol version: the agent speaks {version!r}, and this translation 1"
            return error(message["id"], UNSUPPORTED_VERSION, words, data)
        self._capabilities = as_object(given.get("agentCapabilities"))
        return {**message, "result": initialized_to_v2(given)}


def _with_system_prompt(params: Object) -> Object:
    prompt = params.get("systemPrompt")
    if not isinstance(prompt, dict):
        return params
    return {
        **params,
        "systemPrompt": {**as_object(prompt), "content": blocks_to_v1(objects_in(as_object(prompt).get("content")))},
    }
