"""The translator between a client of version 1 and an agent of version 2.

    version 1 client                      version 2 agent
    initialize                            initialize, with capabilities as objects
    authenticate, logout                  auth/login, auth/logout
    session/load                          session/resume with replayFrom: {"type": "start"}
    session/set_mode                      session/set_config_option of the option with the category mode
    session/prompt, answered at the end   session/prompt, answered at once, then state_update: idle
    session/cancel                        session/cancel, and $/cancel_request for prompts not inserted yet
    session/update                        session/update (`session_for_v1`)
    session/request_permission            the same with a subject (`questions`)

Other messages pass unchanged.
"""

import uuid
from collections.abc import Callable
from typing import NamedTuple

from dragoman.errors import ErrorCode
from dragoman.protocol.translate.content import blocks_to_v2
from dragoman.protocol.translate.envelope import (
    OF_V2,
    Json,
    Object,
    Translated,
    as_object,
    carry,
    error,
    key_of,
    objects_in,
    request,
    to_agent,
    to_client,
    update,
    without,
)
from dragoman.protocol.translate.offers import commands_to_v1
from dragoman.protocol.translate.questions import elicitation_to_v1, permission_to_v1
from dragoman.protocol.translate.session_for_v1 import SessionForV1Client, SupportedUpdates, read_capabilities
from dragoman.protocol.translate.setup import (
    UntranslatableServerError,
    initialize_to_v2,
    initialized_to_v1,
    setup_to_v2,
)
from dragoman.protocol.translate.turn import cancel_request

_RENAMED = {"authenticate": "auth/login", "logout": "auth/logout"}


def _new_id() -> str:
    return str(uuid.uuid4())


class _Call(NamedTuple):
    """A request that was forwarded: the method that its sender used, and its session."""

    method: str
    session_id: str


class TranslatorForV1Client:
    """Translates between a client of version 1 and an agent of version 2: one connection, any number of sessions.

    Pass each message to `from_client` or `from_agent`, and send the returned messages instead. `make_id` makes the ids
    of tool calls for permission requests without a tool call.
    """

    def __init__(self, make_id: Callable[[], str] = _new_id) -> None:
        self._make_id = make_id
        self._supported = SupportedUpdates()
        self._sessions: dict[str, SessionForV1Client] = {}
        self._client_requests: dict[bytes, _Call] = {}
        self._handlers: dict[str, Callable[[Object, Object], Translated]] = {
            "initialize": self._initialize,
            "session/prompt": self._prompt,
            "session/new": self._open,
            "session/resume": self._open,
            "session/fork": self._open,
            "session/load": self._load,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def from_client(self, message: Object) -> Translated:
        """Translate a message from the client."""
        if "method" not in message:
            return to_agent(message)
        params = as_object(message.get("params"))
        if "id" not in message:
            return self._notification_of_client(message, params)
        if message["id"] is None:
            problem = "Invalid request: the agent speaks ACP 2, in which the id of a request is never null"
            return to_client(error(None, ErrorCode.INVALID_REQUEST, problem))
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
        method = message["method"]
        if "id" in message and method == "session/request_permission":
            calls = self._session(params.get("sessionId")).calls
            return to_client({**message, "params": permission_to_v1(params, calls, self._make_id)})
        if "id" in message and method == "elicitation/create":
            return to_client({**message, "params": elicitation_to_v1(params)})
        if "id" not in message and method == "session/update":
            session = self._session(params.get("sessionId"))
            return to_client(*session.translate_update(as_object(params.get("update"))))
        return to_client(message)

    def set_offers(self, session_id: str, response: Object) -> None:
        """Set the config options of a session if the client received them from another connection."""
        self._session(session_id).offers.translate_response(response)

    def forget(self, session_id: str) -> None:
        """Forget a session that the client has left."""
        self._sessions.pop(session_id, None)

    def _session(self, session_id: Json) -> SessionForV1Client:
        name = str(session_id)
        if name not in self._sessions:
            self._sessions[name] = SessionForV1Client(name, self._supported)
        return self._sessions[name]

    def _forward(self, message: Object, method: str, params: Json) -> Translated:
        self._client_requests[key_of(message["id"])] = _Call(
            message["method"], str(as_object(params).get("sessionId", ""))
        )
        return to_agent(request(message["id"], method, params))

    def _request_of_client(self, message: Object, params: Object) -> Translated:
        method: str = message["method"]
        handler = self._handlers.get(method)
        if handler is not None:
            return handler(message, params)
        return self._forward(message, _RENAMED.get(method, method), message.get("params"))

    def _initialize(self, message: Object, params: Object) -> Translated:
        self._supported = read_capabilities(as_object(params.get("clientCapabilities")))
        return self._forward(message, "initialize", initialize_to_v2(params))

    def _prompt(self, message: Object, params: Object) -> Translated:
        translated = {**message, "params": {**params, "prompt": blocks_to_v2(params.get("prompt"))}}
        self._session(params.get("sessionId")).turn.prompt(translated)
        return to_agent(translated)

    def _open(self, message: Object, params: Object) -> Translated:
        return self._forward(message, message["method"], _with_system_prompt(setup_to_v2(params)))

    def _load(self, message: Object, params: Object) -> Translated:
        translated = {**_with_system_prompt(setup_to_v2(params)), "replayFrom": {"type": "start"}}
        self._session(params.get("sessionId")).begin_replay()
        return self._forward(message, "session/resume", translated)

    def _set_option(self, message: Object, params: Object) -> Translated:
        offers = self._session(params.get("sessionId")).offers
        return self._forward(
            message, message["method"], {**params, **offers.value_to_v2(params.get("configId"), params)}
        )

    def _set_mode(self, message: Object, params: Object) -> Translated:
        config_id = self._session(params.get("sessionId")).offers.config_id_of_modes()
        if config_id is None:
            problem = "Method not found: the agent speaks ACP 2, and none of its config options selects a mode"
            return to_client(error(message["id"], ErrorCode.METHOD_NOT_FOUND, problem))
        translated = {**without(params, "modeId"), "configId": config_id, "type": "id", "value": params.get("modeId")}
        return self._forward(message, "session/set_config_option", translated)

    def _notification_of_client(self, message: Object, params: Object) -> Translated:
        if message["method"] == "session/cancel":
            waiting = self._session(params.get("sessionId")).turn.waiting_ids()
            return to_agent(message, *(cancel_request(each) for each in waiting))
        if message["method"] != "$/cancel_request":
            return to_agent(message)
        for session_id, session in self._sessions.items():
            if session.turn.is_inserted(params.get("requestId")):
                return to_agent({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session_id}})
        return to_agent(message)

    def _answer_of_agent(self, message: Object) -> Translated:
        for session in self._sessions.values():
            if session.turn.is_pending(message.get("id")):
                return to_client(*session.turn.answered(message))
        call = self._client_requests.pop(key_of(message.get("id")), None)
        if call is None:
            return to_client(message)
        if call.method == "session/load":
            self._session(call.session_id).is_replaying = False
        if "error" in message:
            return to_client(message)
        return to_client(*self._result_of_agent(message, call))

    def _result_of_agent(self, message: Object, call: _Call) -> list[Object]:
        result = as_object(message.get("result"))
        match call.method:
            case "initialize":
                return [_initialized(message, result)]
            case "session/new" | "session/load" | "session/resume" | "session/fork":
                return self._opened(message, call, result)
            case "session/set_mode" | "session/set_config_option":
                return self._options_set(message, call, result)
            case "session/status" if result.get("state") is not None:
                return [{**message, "result": carry(without(result, "state"), OF_V2, {"state": result["state"]})}]
            case "session/close":
                self._sessions.pop(call.session_id, None)
                return [message]
            case _:
                return [message]

    def _opened(self, message: Object, call: _Call, result: Object) -> list[Object]:
        session_id = str(result.get("sessionId", call.session_id))
        response = {**message, "result": self._session(session_id).offers.translate_response(result)}
        if not result.get("availableCommands"):
            return [response]
        return [response, update(session_id, commands_to_v1(result["availableCommands"]))]

    def _options_set(self, message: Object, call: _Call, result: Object) -> list[Object]:
        response, mode_id = self._session(call.session_id).offers.set_options(result.get("configOptions"))
        rest = without(result, "configOptions")
        if call.method == "session/set_mode":  # the client chose the mode, so it needs no update
            return [{**message, "result": rest}]
        options: Object = {"configOptions": [], **rest, **response}
        answer = {**message, "result": options}
        changed = {"sessionUpdate": "current_mode_update", "currentModeId": mode_id}
        return [answer] if mode_id is None else [update(call.session_id, changed), answer]


def _initialized(message: Object, result: Object) -> Object:
    version = result.get("protocolVersion")
    if version != 2:
        data = {"requested": 1, "supported": [version] if isinstance(version, int) else []}
        problem = f"Unsupported protocol version: the agent speaks {version!r}, and only version 2 can be translated"
        return error(message["id"], ErrorCode.UNSUPPORTED_VERSION, problem, data)
    return {**message, "result": initialized_to_v1(result)}


def _with_system_prompt(params: Object) -> Object:
    prompt = params.get("systemPrompt")
    if not isinstance(prompt, dict):
        return params
    content = blocks_to_v2(objects_in(as_object(prompt).get("content")))
    return {**params, "systemPrompt": {**as_object(prompt), "content": content}}
