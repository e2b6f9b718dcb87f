"""The `initialize` of viewers: answered from the agent's own answer, with the capabilities of the bridge.

The agent is told the capabilities of all connected viewers together. If a viewer comes with more than the agent was
told, and the agent has nothing to lose yet, the agent is started anew.

Each viewer is answered in its own version of ACP, whatever the agent speaks.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from dragoman import __version__
from dragoman.bridge.delivery import Viewer, ViewerAccess, ViewerCapabilities, read_capabilities
from dragoman.bridge.envelope import encode, fields_of, is_given, make_error, make_result
from dragoman.bridge.registry import Announcements, SessionRegistry
from dragoman.bridge.router.logins import CAPABILITY, OAUTH_KEY
from dragoman.bridge.router.questions import Questions
from dragoman.bridge.settings import AgentSpec, Settings, ViewerLimits
from dragoman.bridge.supervisor import AgentFailure, AgentSupervisor, InitializeRefused
from dragoman.bridge.translation import (
    V1,
    V2,
    RequestTranslator,
    Version,
    check_params,
    explain_refusal,
    version_of_viewer,
)
from dragoman.errors import ErrorCode, InvalidParams
from dragoman.protocol.translate.setup import initialize_to_v1
from dragoman.wire import Message

_NO_VERSION = {"path": "params.protocolVersion", "problem": "this is no version", "expected": "an integer, such as 1"}

_MAX_DIGITS = 18
"""Digits of a version that are read; more are a version that nobody has."""

_YES = Raw(b"true")
_EMPTY = Raw(b"{}")
_OURS: dict[str, Any] = {"session": {"notices": {}, "compaction": {}}}
"""Capabilities of the bridge itself: a viewer that shows neither notices nor compactions gets each as a thought.

Subagents are not among them: an agent that shows them says less in the session itself, so that a viewer has to offer
them."""

_SESSION_METHODS = ("list", "resume", "title", "archive", "status")
_SESSION_METHODS_OF_V2 = ("title", "archive", "status")
"""Capabilities of sessions that every agent has behind the bridge."""

Answer = Callable[[bytes], None]


class ViewerHandshakes:
    """Answers `initialize`, and holds messages that come before its answer."""

    def __init__(
        self,
        spec: AgentSpec,
        settings: Settings,
        *,
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        questions: Questions,
        announcements: Announcements,
    ) -> None:
        self._spec = spec
        self._settings = settings
        self._supervisor = supervisor
        self._registry = registry
        self._questions = questions
        self._announcements = announcements
        self._params: dict[Viewer, Raw] = {}
        """The params of each viewer that may do more than read, as version 1 has them."""
        self._given: dict[Viewer, Raw] = {}
        """The params of each viewer, as it sent them."""
        self._held: dict[Viewer, list[bytes]] = {}
        """Messages of viewers whose `initialize` waits for the agent."""

    @property
    def limits(self) -> ViewerLimits:
        """The limits of every viewer that is let in."""
        return self._settings.viewer_limits

    def is_pending(self, viewer: Viewer) -> bool:
        """Tell whether the `initialize` of a viewer waits for the agent."""
        return viewer in self._held

    def initialize(self, viewer: Viewer, id_: bytes, message: Message, answer: Answer) -> None:
        """Answer `initialize`, once the agent has answered its own."""
        fields = fields_of(message.params)
        asked = bytes(fields.get("protocolVersion", b""))
        if not asked.isdigit():
            answer(make_error(id_, ErrorCode.INVALID_PARAMS, _NO_VERSION))
            return
        version = version_of_viewer(int(asked[:_MAX_DIGITS]), fields)
        if version == V2:
            try:
                check_params(V2, "initialize", message.params)
            except InvalidParams as error:
                answer(explain_refusal(id_, error))
                return
        capabilities = read_capabilities(message.params, version)
        self._given[viewer] = Raw(bytes(message.params))
        is_reader = viewer.read_only or capabilities.read_only
        self._keep_params(viewer, _as_v1(message.params, version), version, is_reader=is_reader)

        def succeed() -> None:
            held = self._held.pop(viewer, [])
            self._welcome(viewer, id_, capabilities, answer)
            _receive_all(viewer, held)

        def fail(failure: AgentFailure) -> None:
            held = self._held.pop(viewer, [])
            self.viewer_left(viewer)  # or the agent would be told of it again, and might end by it again
            answer(refuse_initialize(id_, failure))
            _receive_all(viewer, held)

        if viewer in self._held:
            problem = "initialize is still under way; wait for its answer"
            answer(make_error(id_, ErrorCode.INVALID_REQUEST, problem))
        elif self._offers_more(viewer) and self._is_agent_blank():
            self._held[viewer] = []
            self._supervisor.restart(succeed, fail)
        elif self._supervisor.initialize.result is not None:
            succeed()
        else:
            self._held[viewer] = []
            self._supervisor.when_ready(succeed, fail)

    def hold(self, viewer: Viewer, message: Message, line: bytes) -> None:
        """Have a message wait for the answer to `initialize`, as it would at the agent; within limits."""
        held = self._held[viewer]
        held_bytes = sum(map(len, held)) + len(line)
        limits = self._settings.viewer_limits
        if len(held) < limits.max_requests and held_bytes <= limits.window_bytes:
            held.append(line)
        elif message.method is not None and message.id is not UNSET:
            problem = f"too much came before initialize was answered: {len(held)} messages wait; send it then"
            viewer.refuse(bytes(message.id), ErrorCode.INVALID_REQUEST, problem)

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers to params of `initialize`."""
        return _join_params(params, list(self._params.values()))

    def given_params(self, viewer: Viewer) -> Raw:
        """Return the params of a viewer, as it sent them."""
        return self._given.get(viewer, _EMPTY)

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget a viewer."""
        self._params.pop(viewer, None)
        self._given.pop(viewer, None)

    def agent_ready(self) -> None:
        """Translate for viewers anew if the agent speaks another version than in its last life."""
        for viewer, params in self._given.items():
            is_translated = viewer.translator is not None
            if viewer.capabilities is not None and is_translated != self._is_other(viewer.version):
                self._answer_of(viewer, viewer.version, params)

    def _is_other(self, version: Version) -> bool:
        return version != self._supervisor.version

    def _keep_params(self, viewer: Viewer, params: Raw, version: Version, *, is_reader: bool) -> None:
        if not is_reader:
            self._params[viewer] = Raw(bytes(params))
        kept = self._params.get(viewer) or _reader_params(params)
        self._supervisor.initialize.propose(kept, version, is_reader=is_reader)

    def _offers_more(self, viewer: Viewer) -> bool:
        """Tell whether a viewer has a capability that the agent was not told of."""
        params = self._params.get(viewer)
        if params is None:
            return False
        told = _capabilities_of(self._supervisor.initialize.sent)
        return _join(told, _capabilities_of(params)) != told

    def _is_agent_blank(self) -> bool:
        """Tell whether the running agent has nothing in memory that its next life would lack."""
        supervisor = self._supervisor
        is_at_work = len(supervisor.calls) or len(self._questions) or self._registry.is_agent_asked()
        return supervisor.is_ready and not supervisor.initialize.has_login and not is_at_work

    def _welcome(self, viewer: Viewer, id_: bytes, capabilities: ViewerCapabilities, answer: Answer) -> None:
        if capabilities.read_only:
            viewer.access = msgspec.structs.replace(viewer.access, read_only=True)
        viewer.capabilities = capabilities
        result = self._answer_of(viewer, capabilities.version, self._given.get(viewer, _EMPTY))
        if viewer.has_cursors:
            can_list = self._supervisor.support.list
            own = describe_bridge(self._settings, self._spec, viewer.access, can_list=can_list)
            result["_meta"] = {**fields_of(Raw(encode(result.get("_meta") or {}))), "dragoman": own}
        extra = {"connectionId": viewer.id} if viewer.over_http else {}
        answer(make_result(id_, {**result, **extra}))
        self._announcements.welcome(viewer)

    def _answer_of(self, viewer: Viewer, version: Version, params: Raw) -> dict[str, Any]:
        """Return the agent's answer in the words of a viewer, whose translator is made with it."""
        result = self._supervisor.initialize.result or _EMPTY
        answer = dict[str, Any](fields_of(result))
        answer = (offer_sessions if self._supervisor.version == V1 else offer_sessions_of_v2)(answer)
        viewer.translator = None
        if not self._is_other(version):
            return answer
        viewer.translator = RequestTranslator(version)
        return viewer.translator.introduce(params, answer)


def _receive_all(viewer: Viewer, lines: list[bytes]) -> None:
    for line in lines:
        viewer.receive(line)


def offer_sessions(answer: dict[str, Any]) -> dict[str, Any]:
    """Add to the answer of an agent of version 1 what the bridge does for sessions of any agent."""
    capabilities = fields_of(answer.get("agentCapabilities", UNSET))
    sessions = fields_of(capabilities.get("sessionCapabilities", UNSET))
    for name in _SESSION_METHODS:
        if not is_given(sessions.get(name)):
            sessions[name] = _EMPTY
    capabilities["loadSession"] = _YES
    capabilities["sessionCapabilities"] = Raw(encode(sessions))
    return {**answer, "agentCapabilities": capabilities}


def offer_sessions_of_v2(answer: dict[str, Any]) -> dict[str, Any]:
    """Add to the answer of an agent of version 2 what the bridge does for sessions of any agent."""
    capabilities = fields_of(answer.get("capabilities", UNSET))
    if not is_given(capabilities.get("session")):
        return answer
    session = fields_of(capabilities["session"])
    for name in _SESSION_METHODS_OF_V2:
        if not is_given(session.get(name)):
            session[name] = _EMPTY
    return {**answer, "capabilities": {**capabilities, "session": session}}


def refuse_initialize(id_: bytes, failure: AgentFailure) -> bytes:
    """Answer that the agent is not there; if the agent itself refused, with its own code and data."""
    code, data = int(ErrorCode.INTERNAL_ERROR), failure.data()
    if isinstance(failure, InitializeRefused):
        code, data = failure.error.code, data if failure.error.data is UNSET else failure.error.data
    return make_error(id_, code, data, sentence=failure.reason)


def describe_bridge(settings: Settings, spec: AgentSpec, access: ViewerAccess, *, can_list: bool) -> dict[str, Any]:
    """Describe the bridge to a viewer that knows our extensions, or the part of them for relays.

    A viewer of one session is told of nothing else. `can_list`: the agent has a list of its own.
    """
    is_scoped = access.session_id is not None
    return {
        "version": __version__,
        "agent": spec.name,
        "agents": list_agents([spec] if is_scoped else settings.agents),
        "cwd": "" if is_scoped else settings.cwd,
        "readOnly": access.read_only,
        "questionLinks": not access.read_only,
        "agentLists": can_list and settings.store is None and not is_scoped,
    }


def list_agents(specs: Sequence[AgentSpec]) -> list[dict[str, str]]:
    """Name the agents to choose from."""
    return [{"name": spec.name, "title": spec.title or spec.name} for spec in specs]


def _as_v1(params: Raw, version: Version) -> Raw:
    """Return the params of a viewer as version 1 has them, with which all viewers are joined."""
    if version == V2:
        return Raw(encode(initialize_to_v1(msgspec.json.decode(params))))
    fields = fields_of(params)
    is_v1 = bytes(fields.get("protocolVersion", b"")) in (b"0", b"1")
    return params if is_v1 else Raw(encode({**fields, "protocolVersion": V1}))


def _reader_params(params: Raw) -> Raw:
    """Make the params for an agent whose only viewer may only read: no capability of it is for the agent."""
    version = fields_of(params).get("protocolVersion", Raw(b"1"))
    return Raw(encode({"protocolVersion": version, "clientCapabilities": {}}))


def _join_params(params: Raw, viewers: Sequence[Raw]) -> Raw:
    """Join the capabilities of all viewers; without any viewer, those of the last params stay."""
    own = _capabilities_of(params)
    joined = _join(own if not viewers else reduce(_join, map(_capabilities_of, viewers)), _OURS)
    fields = fields_of(params)
    meta = fields_of(fields_of(fields.get("clientCapabilities", UNSET)).get("_meta", UNSET))
    capabilities = {**joined, "_meta": {**meta, OAUTH_KEY: CAPABILITY}}
    return Raw(encode({**fields, "clientCapabilities": capabilities}))


def _capabilities_of(params: Raw) -> dict[str, Any]:
    fields = fields_of(fields_of(params).get("clientCapabilities", UNSET))
    decoded: dict[str, Any] = {}
    for key, value in fields.items():
        if key != "_meta":
            with suppress(msgspec.DecodeError, RecursionError):  # a number out of range is JSON, and means nothing here
                decoded[key] = msgspec.json.decode(value)
    return decoded


def _join(one: Any, other: Any) -> Any:
    """Join two sets of capabilities: either is enough, down to the last detail."""
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return {key: _join(ours.get(key), theirs.get(key)) for key in {**ours, **theirs}}
    is_other = one is None or (one is False and other is not None)
    return cast("Any", other if is_other else one)
