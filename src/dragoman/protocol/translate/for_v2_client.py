"""The translator between a client of version 2 and an agent of version 1.

    version 2 client                      version 1 agent
    initialize                            initialize, with capabilities as booleans
    auth/login, auth/logout               authenticate, logout
    session/resume                        session/resume, or session/load if it replays or cannot resume
    session/set_config_option             the same, or session/set_mode for the option made of modes
    session/prompt, answered at once      session/prompt, answered at the end (`turn`)
    session/close without support         session/cancel, and the session is forgotten
    session/list without support          answered here with an empty list
    tool_call/cancel, terminal/cancel     the agent's extension method, else refused
    session/update                        session/update (`session_for_v2`)
    session/request_permission            the same with a tool call (`questions`)
    none                                  fs/…, terminal/… are refused

Other messages pass unchanged.
"""

import uuid
from collections.abc import Callable
from typing import NamedTuple

from dragoman.errors import ErrorCode
from dragoman.protocol.extensions import CALLS, TERMINALS
from dragoman.protocol.translate.content import BLOCKS, blocks_to_v1
from dragoman.protocol.translate.envelope import (
    OF_V1,
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
from dragoman.protocol.translate.setup import (
    UntranslatableServerError,
    initialize_to_v1,
    initialized_to_v2,
    setup_to_v1,
)
from dragoman.protocol.translate.turn import V1TurnState

_RENAMED = {"auth/login": "authenticate", "auth/logout": "logout"}
_REMOVED = ("fs/", "terminal/")
"""Methods of a version 1 client that version 2 removed."""

_OPTION_TYPES = ("id", "boolean")
"""Types of config option values that version 1 has. The version 2 schema requires -32602 for all others."""


def _new_id() -> str:
    return str(uuid.uuid4())


class _Call(NamedTuple):
    """A request that was forwarded: the method that its sender used, its session, and the mode that it sets."""

    method: str
    session_id: str
    mode_id: Json = None


class TranslatorForV2Client:
    """Translates between a client of version 2 and an agent of version 1: one connection, any number of sessions.

    Pass each message to `from_client` or `from_agent`, and send the returned messages instead. `make_id` makes the ids
    of messages for which the agent has no id.
    """

    def __init__(self, make_id: Callable[[], str] = _new_id) -> None:
        self._make_id = make_id
        self._sessions: dict[str, SessionForV2Client] = {}
        self._client_requests: dict[bytes, _Call] = {}
        self._agent_requests: dict[bytes, _Call] = {}
        self._abandoned: set[bytes] = set()
        """The prompts whose session is closed. Their responses are dropped."""
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
        """Translate a message from the client."""
        if "method" not in message:
            return self._answer_of_client(message)
        params = as_object(message.get("params"))
        if "id" not in message:
            return self._notification_of_client(message, params)
        try:
            return self._request_of_client(message, params)
        except UntranslatableServerError as bad:
            data = {"path": bad.field, "problem": bad.problem}
            return to_client(error(message["id"], ErrorCode.INVALID_PARAMS, f"Invalid params: {bad}", data))

    def from_agent(self, message: Object) -> Translated:
        """Translate a message from the agent."""
        if "method" not in message:
            return self._answer_of_agent(message)
        params = as_object(message.get("params"))
        if "id" in message:
            return self._request_of_agent(message, params)
        return self._notification_of_agent(message, params)

    def set_offers(self, session_id: str, response: Object) -> None:
        """Set the modes and options of a session if the client received them from another connection."""
        self._session(session_id).offers.translate_response(response)

    def forget(self, session_id: str) -> None:
        """Forget a session that the client has left."""
        self._sessions.pop(session_id, None)

    def _session(self, session_id: Json) -> SessionForV2Client:
        name = str(session_id)
        if name not in self._sessions:
            self._sessions[name] = SessionForV2Client(name, self._make_id)
        return self._sessions[name]

    def _forward(self, message: Object, method: str, params: Json, mode_id: Json = None) -> Translated:
        session_id = str(as_object(params).get("sessionId", ""))
        self._client_requests[key_of(message["id"])] = _Call(message["method"], session_id, mode_id)
        return to_agent(request(message["id"], method, params))

    def _request_of_client(self, message: Object, params: Object) -> Translated:
        method: str = message["method"]
        handler = self._handlers.get(method)
        if handler is not None:
            return handler(message, params)
        return self._forward(message, _RENAMED.get(method, method), message.get("params"))

    def _initialize(self, message: Object, params: Object) -> Translated:
        return self._forward(message, "initialize", initialize_to_v1(params))

    def _prompt(self, message: Object, params: Object) -> Translated:
        kinds = [each.get("type") for each in objects_in(params.get("prompt"))]
        unknown = [index for index, kind in enumerate(kinds) if kind not in BLOCKS]
        if unknown:
            path = f"params.prompt[{unknown[0]}].type"
            problem = f"there is no content type {kinds[unknown[0]]!r}"
            message_text = f"Invalid params: {path}: {problem}"
            return to_client(
                error(message["id"], ErrorCode.INVALID_PARAMS, message_text, {"path": path, "problem": problem})
            )
        if params.get("sessionId") not in self._sessions:  # the session may not exist, so no state is sent for it
            return self._forward(message, "session/prompt", {**params, "prompt": blocks_to_v1(params.get("prompt"))})
        session = self._session(params.get("sessionId"))
        if session.turn.state is V1TurnState.IDLE:
            session.begin_turn()
        return Translated(*session.turn.prompt(message))

    def _open(self, message: Object, params: Object) -> Translated:
        return self._forward(message, message["method"], _with_system_prompt(setup_to_v1(params)))

    def _list(self, message: Object, params: Object) -> Translated:
        if self._has("list"):
            return self._forward(message, "session/list", params)
        return to_client(result(message["id"], carry({"sessions": []}, OF_V1, {"list": False})))

    def _logout(self, message: Object, params: Object) -> Translated:
        if isinstance(as_object(self._capabilities.get("auth")).get("logout"), dict):
            return self._forward(message, "logout", params)
        problem = "Method not found: the agent speaks ACP 1 and has no logout"
        return to_client(error(message["id"], ErrorCode.METHOD_NOT_FOUND, problem))

    def _cancel_part(self, message: Object, params: Object) -> Translated:
        part = CALLS if message["method"] == "tool_call/cancel" else TERMINALS
        own = as_object(as_object(self._capabilities.get("_meta")).get(part)).get("cancel")
        if isinstance(own, str):
            return self._forward(message, own, params)
        problem = "Invalid params: the agent speaks ACP 1, in which only session/cancel ends a tool call or a command"
        return to_client(error(message["id"], ErrorCode.INVALID_PARAMS, problem))

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
            message_text = f"Invalid params: params.replayFrom: {problem}"
            return to_client(error(message["id"], ErrorCode.INVALID_PARAMS, message_text, data))
        if cursor is None and self._has("resume"):
            return self._forward(message, "session/resume", params)
        if not can_load:
            message_text = "Method not found: the agent speaks ACP 1 and can neither load nor resume a session"
            return to_client(error(message["id"], ErrorCode.METHOD_NOT_FOUND, message_text))
        session = self._session(params.get("sessionId"))
        session.is_muted = cursor is None
        session.begin_turn()
        return self._forward(message, "session/load", params)

    def _set_option(self, message: Object, params: Object) -> Translated:
        if params.get("type") not in _OPTION_TYPES:
            problem = f"expected one of {', '.join(_OPTION_TYPES)}, received {params.get('type')!r}"
            data = {"path": "params.type", "problem": problem}
            return to_client(
                error(message["id"], ErrorCode.INVALID_PARAMS, f"Invalid params: params.type: {problem}", data)
            )
        session = self._session(params.get("sessionId"))
        if session.offers.is_mode(params.get("configId")):
            translated = {"sessionId": params.get("sessionId"), "modeId": params.get("value")}
            return self._forward(message, "session/set_mode", translated, params.get("value"))
        translated = params if params.get("type") == "boolean" else without(params, "type")
        return self._forward(message, message["method"], translated)

    def _close(self, message: Object, params: Object) -> Translated:
        if self._has("close"):
            messages = self._cancel_held(params)
            passed = self._forward(message, "session/close", params)
            return Translated([*messages, *passed.to_client], passed.to_agent)
        messages = self._forget(str(params.get("sessionId")))
        cancelling = [notification("session/cancel", params)] if messages else []
        return Translated([*messages, result(message["id"], {})], cancelling)

    def _cancel_held(self, params: Object) -> list[Object]:
        session = self._sessions.get(str(params.get("sessionId")))
        return [] if session is None else session.turn.cancel_held()

    def _forget(self, session_id: str) -> list[Object]:
        """Forget a closed session. Return the messages for its client that end the turn."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return []
        if session.turn.state is not V1TurnState.IDLE:
            self._abandoned.add(key_of(session.turn.prompt_id))
        return session.turn.close()

    def _notification_of_client(self, message: Object, params: Object) -> Translated:
        if message["method"] == "session/cancel":
            return Translated(self._cancel_held(params), [message])
        if message["method"] != "$/cancel_request":
            return to_agent(message)
        for session in self._sessions.values():
            if messages := session.turn.cancel(params.get("requestId")):
                return to_client(*messages)
        return to_agent(message)

    def _answer_of_client(self, message: Object) -> Translated:
        call = self._agent_requests.pop(key_of(message.get("id")), None)
        if call is None:
            return to_agent(message)
        messages = self._answered(call.session_id, message["id"])
        if call.method == "session/request_permission" and "result" in message:
            message = {**message, "result": outcome_to_v1(as_object(message["result"]))}
        return Translated(messages, [message])

    def _answered(self, session_id: str, request_id: Json) -> list[Object]:
        """Record that a question was answered or withdrawn. Do not reopen a session that is already closed."""
        session = self._sessions.get(session_id)
        return [] if session is None else session.turn.answered(request_id)

    def _request_of_agent(self, message: Object, params: Object) -> Translated:
        method = message["method"]
        if method.startswith(_REMOVED):
            problem = f"Method not found: the client speaks ACP 2, which has no {method}"
            return to_agent(error(message["id"], ErrorCode.METHOD_NOT_FOUND, problem))
        session_id = str(params.get("sessionId", ""))
        is_question = method in ("session/request_permission", "elicitation/create") and bool(session_id)
        self._agent_requests[key_of(message["id"])] = _Call(method, session_id if is_question else "")
        if method == "session/request_permission":
            session = self._session(session_id)
            title = session.title_of(as_object(params.get("toolCall")).get("toolCallId"))
            params = permission_to_v2(params, title)
        elif method == "elicitation/create":
            params = elicitation_to_v2(params)
        else:
            return to_client(message)
        messages = self._session(session_id).turn.question(message["id"]) if is_question else []
        return to_client(*messages, {**message, "params": params})

    def _notification_of_agent(self, message: Object, params: Object) -> Translated:
        if message["method"] == "session/update":
            session = self._session(params.get("sessionId"))
            return to_client(*session.translate_update(as_object(params.get("update"))))
        if message["method"] == "$/cancel_request":
            call = self._agent_requests.get(key_of(params.get("requestId")))
            messages = self._answered(call.session_id, params.get("requestId")) if call else []
            return to_client(message, *messages)
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
        call = self._client_requests.pop(key, None)
        if call is None:  # the response to a message that was not translated, such as an invalid one
            return to_client(message)
        if "error" in message:
            return self._failure_of_agent(message, call)
        return to_client(*self._result_of_agent(message, call))

    def _failure_of_agent(self, message: Object, call: _Call) -> Translated:
        failure = as_object(message["error"])
        if call.session_id in self._sessions:
            self._sessions[call.session_id].is_muted = False
        if failure.get("code") != ErrorCode.RESOURCE_NOT_FOUND or not call.session_id:
            return to_client(message)
        if call.method == "session/close":
            return to_client(result(message["id"], {}))
        details = failure.get("data")
        data = {**as_object(details), "sessionId": call.session_id}
        if details is not None and not isinstance(details, dict):
            data["data"] = details
        return to_client({**message, "error": {**failure, "data": data}})

    def _result_of_agent(self, message: Object, call: _Call) -> list[Object]:
        result = as_object(message.get("result"))
        match call.method:
            case "initialize":
                return [self._initialized(message, result)]
            case "session/new" | "session/fork":
                session = self._session(result.get("sessionId"))
                return [{**message, "result": session.offers.translate_response(result)}]
            case "session/resume":
                return self._resumed(message, call, result)
            case "session/set_config_option":
                return [{**message, "result": self._option_set(call, result)}]
            case "session/close":
                return [*self._forget(call.session_id), message]
            case _:
                translated = {"messageId": self._make_id()} if call.method == "session/prompt" else {}
                return [{**message, "result": translated} if message.get("result") is None or translated else message]

    def _resumed(self, message: Object, call: _Call, result: Object) -> list[Object]:
        session = self._session(call.session_id)
        session.is_muted = False
        state = "idle" if session.turn.state is V1TurnState.IDLE else "running"
        snapshot = update(call.session_id, {"sessionUpdate": "state_update", "state": state})
        return [snapshot, {**message, "result": session.offers.translate_response(result)}]

    def _option_set(self, call: _Call, result: Object) -> Object:
        offers = self._session(call.session_id).offers
        if call.mode_id is None:
            return offers.translate_options(result)
        offers.set_mode(call.mode_id)
        return {**result, "configOptions": offers.options() or []}

    def _initialized(self, message: Object, result: Object) -> Object:
        version = result.get("protocolVersion")
        if version != 1:
            data = {"requested": 2, "supported": [version] if isinstance(version, int) else []}
            problem = (
                f"Unsupported protocol version: the agent speaks {version!r}, and only version 1 can be translated"
            )
            return error(message["id"], ErrorCode.UNSUPPORTED_VERSION, problem, data)
        self._capabilities = as_object(result.get("agentCapabilities"))
        return {**message, "result": initialized_to_v2(result)}


def _with_system_prompt(params: Object) -> Object:
    prompt = params.get("systemPrompt")
    if not isinstance(prompt, dict):
        return params
    return {
        **params,
        "systemPrompt": {**as_object(prompt), "content": blocks_to_v1(objects_in(as_object(prompt).get("content")))},
    }
