"""The translator between a client of version 1 and an agent of version 2."""

import uuid
from collections.abc import Callable
from typing import NamedTuple

from dragoman.protocol.translate.content import blocks_to_v2
from dragoman.protocol.translate.envelope import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    OF_V2,
    UNSUPPORTED_VERSION,
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
from dragoman.protocol.translate.session_for_v1 import ClientTakes, SessionForV1Client, read_capabilities
from dragoman.protocol.translate.setup import UntranslatableServer, initialize_to_v2, initialized_to_v1, setup_to_v2
from dragoman.protocol.translate.turn import cancel_request

_RENAMED = {"authenticate": "auth/login", "logout": "auth/logout"}


def _new_id() -> str:
    return str(uuid.uuid4())


class _Call(NamedTuple):
    """A request on its way: the method that its sender used, and its session."""

    method: str
    session_id: str


class TranslatorForV1Client:
    """Lets a client of version 1 and an agent of version 2 talk; one connection, any number of sessions.

    Each message that comes from a side is given to `from_client` or `from_agent`, and the messages that it returns are
    sent in its place. `make_id` makes the ids of tool calls for permission that is about none.
    """

    def __init__(self, make_id: Callable[[], str] = _new_id) -> None:
        self._make_id = make_id
        self._takes = ClientTakes()
        self._sessions: dict[str, SessionForV1Client] = {}
        self._of_client: dict[bytes, _Call] = {}
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
        """Take a message of the client."""
        if "method" not in message:
            return to_agent(message)
        params = as_object(message.get("params"))
        if "id" not in message:
            return self._notification_of_client(message, params)
        if message["id"] is None:
            words = "Invalid request: the agent speaks ACP 2, where the id of a request is never null"
            return to_client(error(None, INVALID_REQUEST, words))
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
        method = message["method"]
        if "id" in message and method == "session/request_permission":
            calls = self._session(params.get("sessionId")).calls
            return to_client({**message, "params": permission_to_v1(params, calls, self._make_id)})
        if "id" in message and method == "elicitation/create":
            return to_client({**message, "params": elicitation_to_v1(params)})
        if "id" not in message and method == "session/update":
            session = self._session(params.get("sessionId"))
            return to_client(*session.take_update(as_object(params.get("update"))))
        return to_client(message)

    def take_offers(self, session_id: str, response: Object) -> None:
        """Take the options of a session where the client was told them by someone else."""
        self._session(session_id).offers.take(response)

    def forget(self, session_id: str) -> None:
        """Forget a session that the client has left."""
        self._sessions.pop(session_id, None)

    def _session(self, session_id: Json) -> SessionForV1Client:
        name = str(session_id)
        if name not in self._sessions:
            self._sessions[name] = SessionForV1Client(name, self._takes)
        return self._sessions[name]

    def _pass(self, message: Object, method: str, params: Json) -> Translated:
        self._of_client[key_of(message["id"])] = _Call(message["method"], str(as_object(params).get("sessionId", "")))
        return to_agent(request(message["id"], method, params))

    def _request_of_client(self, message: Object, params: Object) -> Translated:
        method: str = message["method"]
        handler = self._handlers.get(method)
        if handler is not None:
            return handler(message, params)
        return self._pass(message, _RENAMED.get(method, method), message.get("params"))

    def _initialize(self, message: Object, params: Object) -> Translated:
        self._takes = read_capabilities(as_object(params.get("clientCapabilities")))
        return self._pass(message, "initialize", initialize_to_v2(params))

    def _prompt(self, message: Object, params: Object) -> Translated:
        made = {**message, "params": {**params, "prompt": blocks_to_v2(params.get("prompt"))}}
        self._session(params.get("sessionId")).turn.prompt(made)
        return to_agent(made)

    def _open(self, message: Object, params: Object) -> Translated:
        return self._pass(message, message["method"], _with_system_prompt(setup_to_v2(params)))

    def _load(self, message: Object, params: Object) -> Translated:
        made = {**_with_system_prompt(setup_to_v2(params)), "replayFrom": {"type": "start"}}
        self._session(params.get("sessionId")).begin_replay()
        return self._pass(message, "session/resume", made)

    def _set_option(self, message: Object, params: Object) -> Translated:
        offers = self._session(params.get("sessionId")).offers
        return self._pass(message, message["method"], {**params, **offers.value_to_v2(params.get("configId"), params)})

    def _set_mode(self, message: Object, params: Object) -> Translated:
        config_id = self._session(params.get("sessionId")).offers.config_id_of_modes()
        if config_id is None:
            words = "Method not found: the agent speaks ACP 2, and none of its config options is a choice of modes"
            return to_client(error(message["id"], METHOD_NOT_FOUND, words))
        made = {**without(params, "modeId"), "configId": config_id, "type": "id", "value": params.get("modeId")}
        return self._pass(message, "session/set_config_option", made)

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
        call = self._of_client.pop(key_of(message.get("id")), None)
        if call is None:
            return to_client(message)
        if call.method == "session/load":
            self._session(call.session_id).is_replaying = False
        if "error" in message:
            return to_client(message)
        return to_client(*self._result_of_agent(message, call))

    def _result_of_agent(self, message: Object, call: _Call) -> list[Object]:
        given = as_object(message.get("result"))
        match call.method:
            case "initialize":
                return [_initialized(message, given)]
            case "session/new" | "session/load" | "session/resume" | "session/fork":
                return self._opened(message, call, given)
            case "session/set_mode" | "session/set_config_option":
                return self._options_set(message, call, given)
            case "session/status" if given.get("state") is not None:
                return [{**message, "result": carry(without(given, "state"), OF_V2, {"state": given["state"]})}]
            case "session/close":
                self._sessions.pop(call.session_id, None)
                return [message]
            case _:
                return [message]

    def _opened(self, message: Object, call: _Call, given: Object) -> list[Object]:
        session_id = str(given.get("sessionId", call.session_id))
        told = {**message, "result": self._session(session_id).offers.take(given)}
        if not given.get("availableCommands"):
            return [told]
        return [told, update(session_id, commands_to_v1(given["availableCommands"]))]

    def _options_set(self, message: Object, call: _Call, given: Object) -> list[Object]:
        told, mode_id = self._session(call.session_id).offers.take_options(given.get("configOptions"))
        rest = without(given, "configOptions")
        if call.method == "session/set_mode":  # the client has chosen the mode and is told no more
            return [{**message, "result": rest}]
        options: Object = {"configOptions": [], **rest, **told}
        answer = {**message, "result": options}
        changed = {"sessionUpdate": "current_mode_update", "currentModeId": mode_id}
        return [answer] if mode_id is None else [update(call.session_id, changed), answer]


def _initialized(message: Object, given: Object) -> Object:
    version = given.get("protocolVersion")
    if version != 2:
        data = {"requested": 1, "supported": [version] if isinstance(version, int) else []}
        words = f"Unsupported protocol version: the agent speaks {version!r}, and this translation 2"
        return error(message["id"], UNSUPPORTED_VERSION, words, data)
    return {**message, "result": initialized_to_v1(given)}


def _with_system_prompt(params: Object) -> Object:
    prompt = params.get("systemPrompt")
    if not isinstance(prompt, dict):
        return params
    content = blocks_to_v2(objects_in(as_object(prompt).get("content")))
    return {**params, "systemPrompt": {**as_object(prompt), "content": content}}
