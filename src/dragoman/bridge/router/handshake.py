"""The `initialize` requests of viewers, answered with the agent's stored answer and the bridge's capabilities.

The agent receives the joined capabilities of all connected viewers. If a new viewer has more than the agent received,
and the agent has no state to lose yet, the bridge restarts the agent.

Each viewer is answered in its own version of ACP. The agent may speak another one.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from dragoman import __version__
from dragoman.bridge.agent_host import AgentHost, InitializeRefused
from dragoman.bridge.agent_link import AgentFailure, NoAnswerError
from dragoman.bridge.envelope import is_given
from dragoman.bridge.router.logins import CAPABILITY, OAUTH_KEY
from dragoman.bridge.sessions import ServedSessions
from dragoman.bridge.settings import AgentSpec, BridgeSettings, ViewerLimits
from dragoman.bridge.translation import (
    V1,
    V2,
    RequestTranslator,
    Version,
    check_params,
    explain_refusal,
    version_of_viewer,
)
from dragoman.bridge.viewers import Viewer, ViewerAccess, ViewerCapabilities, read_capabilities
from dragoman.errors import ErrorCode, InvalidParamsError
from dragoman.protocol import methods
from dragoman.protocol.translate.setup import initialize_to_v1
from dragoman.wire import Message
from dragoman.wire.envelope import encode, fields_of, make_error, make_result

_NO_VERSION = {
    "path": "params.protocolVersion",
    "problem": "this is not a protocol version",
    "expected": "an integer, such as 1",
}

_MAX_DIGITS = 18
"""Digits of a version that are read. No real version is longer."""

_YES = Raw(b"true")
_EMPTY = Raw(b"{}")
_OURS: dict[str, Any] = {"session": {"notices": {}, "compaction": {}}}
"""Capabilities of the bridge itself. A viewer that does not support notices or compactions receives them as thoughts.

Subagents are not included. An agent that shows subagents writes less into the session itself, so the viewer must
support them."""

_SESSION_METHODS = ("list", "resume", "title", "archive", "status")
_SESSION_METHODS_OF_V2 = ("title", "archive", "status")
"""Session capabilities that the bridge adds for every agent."""

SendAnswer = Callable[[bytes], None]


class _HeldMessages:
    """Messages of a viewer that wait until earlier requests have begun."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.blocks = 0
        """The number of running blocks that hold the messages."""


class ViewerHandshakes:
    """Answers `initialize`, and holds messages that arrive before its answer."""

    def __init__(
        self,
        spec: AgentSpec,
        settings: BridgeSettings,
        *,
        host: AgentHost,
        sessions: ServedSessions,
    ) -> None:
        self._spec = spec
        self._settings = settings
        self._host = host
        self._sessions = sessions
        self._params: dict[Viewer, Raw] = {}
        """The params of each viewer that is not read-only, in the form of version 1."""
        self._given: dict[Viewer, Raw] = {}
        """The params of each viewer, as the viewer sent them."""
        self._held: dict[Viewer, _HeldMessages] = {}
        """Messages of viewers that wait until an earlier request has begun."""

    @property
    def limits(self) -> ViewerLimits:
        """The limits of every viewer."""
        return self._settings.viewer_limits

    def is_holding(self, viewer: Viewer) -> bool:
        """Return whether messages of a viewer are held."""
        return viewer in self._held

    @contextmanager
    def holding(self, viewer: Viewer) -> Generator[None]:
        """Hold the later messages of a viewer, and receive them at the end of the last of such blocks."""
        held = self._held.setdefault(viewer, _HeldMessages())
        held.blocks += 1
        try:
            yield
        finally:
            held.blocks -= 1
            if not held.blocks:
                del self._held[viewer]
        if not held.blocks:
            for line in held.lines:
                viewer.receive(line)

    async def initialize(self, viewer: Viewer, id_: bytes, message: Message, answer: SendAnswer) -> None:
        """Answer `initialize` once the agent has answered its own. Start or restart the agent if necessary."""
        fields = fields_of(message.params)
        asked = bytes(fields.get("protocolVersion", b""))
        if not asked.isdigit():
            answer(make_error(id_, ErrorCode.INVALID_PARAMS, _NO_VERSION))
            return
        version = version_of_viewer(int(asked[:_MAX_DIGITS]), fields)
        if version == V2:
            try:
                check_params(V2, methods.INITIALIZE.name, message.params)
            except InvalidParamsError as error:
                answer(explain_refusal(id_, error))
                return
        capabilities = read_capabilities(message.params, version)
        self._given[viewer] = Raw(bytes(message.params))
        is_reader = viewer.read_only or capabilities.read_only
        self._keep_params(viewer, _as_v1(message.params, version), version, is_reader=is_reader)
        if viewer in self._held:
            problem = "an earlier request is still running; wait for its response"
            answer(make_error(id_, ErrorCode.INVALID_REQUEST, problem))
            return
        with self.holding(viewer):
            try:
                if self._offers_more(viewer) and self._is_agent_blank():
                    await self._host.restart()
                elif self._host.initialize.result is None:
                    await self._host.link()
            except NoAnswerError as error:
                self.viewer_left(viewer)  # the agent may have failed because of these params: its next life omits them
                answer(refuse_initialize(id_, error.failure))
            else:
                self._welcome(viewer, id_, capabilities, answer)

    def hold(self, viewer: Viewer, message: Message, line: bytes) -> None:
        """Hold a message, as an agent that is busy would. Refuse requests beyond the limits."""
        held = self._held[viewer].lines
        held_bytes = sum(map(len, held)) + len(line)
        limits = self._settings.viewer_limits
        if len(held) < limits.max_requests and held_bytes <= limits.window_bytes:
            held.append(line)
        elif message.method is not None and message.id is not UNSET:
            problem = (
                f"{len(held)} messages wait for an earlier request, which is the limit; send this after its answer"
            )
            viewer.refuse(bytes(message.id), ErrorCode.INVALID_REQUEST, problem)

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers to params of `initialize`."""
        return _join_params(params, list(self._params.values()))

    def sent_params(self, viewer: Viewer) -> Raw:
        """Return the params of a viewer, as the viewer sent them."""
        return self._given.get(viewer, _EMPTY)

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget a viewer."""
        self._params.pop(viewer, None)
        self._given.pop(viewer, None)

    def agent_ready(self) -> None:
        """Replace the viewers' translators if the agent speaks another version than in its last life."""
        for viewer, params in self._given.items():
            is_translated = viewer.translator is not None
            if viewer.capabilities is not None and is_translated != self._is_other(viewer.version):
                self._answer_of(viewer, viewer.version, params)

    def _is_other(self, version: Version) -> bool:
        return version != self._host.version

    def _keep_params(self, viewer: Viewer, params: Raw, version: Version, *, is_reader: bool) -> None:
        if not is_reader:
            self._params[viewer] = Raw(bytes(params))
        kept = self._params.get(viewer) or _reader_params(params)
        self._host.initialize.propose(kept, version, is_reader=is_reader)

    def _offers_more(self, viewer: Viewer) -> bool:
        """Return whether a viewer has a capability that was not sent to the agent."""
        params = self._params.get(viewer)
        if params is None:
            return False
        sent = _capabilities_of(self._host.initialize.sent)
        return _join(sent, _capabilities_of(params)) != sent

    def _is_agent_blank(self) -> bool:
        """Return whether the agent can be restarted without losing anything that it has in memory."""
        host = self._host
        is_at_work = host.pending or len(self._sessions.questions) or self._sessions.is_agent_asked()
        return host.is_ready and not host.initialize.has_login and not is_at_work

    def _welcome(self, viewer: Viewer, id_: bytes, capabilities: ViewerCapabilities, answer: SendAnswer) -> None:
        if capabilities.read_only:
            viewer.access = msgspec.structs.replace(viewer.access, read_only=True)
        viewer.capabilities = capabilities
        result = self._answer_of(viewer, capabilities.version, self._given.get(viewer, _EMPTY))
        if viewer.has_cursors:
            can_list = self._host.support.list
            own = describe_bridge(self._settings, self._spec, viewer.access, can_list=can_list)
            result["_meta"] = {**fields_of(Raw(encode(result.get("_meta") or {}))), "dragoman": own}
        extra = {"connectionId": viewer.id} if viewer.over_http else {}
        answer(make_result(id_, {**result, **extra}))
        self._sessions.announcements.welcome(viewer)

    def _answer_of(self, viewer: Viewer, version: Version, params: Raw) -> dict[str, Any]:
        """Return the agent's answer in the viewer's version, and create the viewer's translator if they differ."""
        result = self._host.initialize.result or _EMPTY
        answer = dict[str, Any](fields_of(result))
        answer = (offer_sessions if self._host.version == V1 else offer_sessions_of_v2)(answer)
        viewer.translator = None
        if not self._is_other(version):
            return answer
        viewer.translator = RequestTranslator(version)
        return viewer.translator.introduce(params, answer)


def offer_sessions(answer: dict[str, Any]) -> dict[str, Any]:
    """Add the session capabilities of the bridge to the answer of an agent of version 1."""
    capabilities = fields_of(answer.get("agentCapabilities", UNSET))
    sessions = fields_of(capabilities.get("sessionCapabilities", UNSET))
    for name in _SESSION_METHODS:
        if not is_given(sessions.get(name)):
            sessions[name] = _EMPTY
    capabilities["loadSession"] = _YES
    capabilities["sessionCapabilities"] = Raw(encode(sessions))
    return {**answer, "agentCapabilities": capabilities}


def offer_sessions_of_v2(answer: dict[str, Any]) -> dict[str, Any]:
    """Add the session capabilities of the bridge to the answer of an agent of version 2."""
    capabilities = fields_of(answer.get("capabilities", UNSET))
    if not is_given(capabilities.get("session")):
        return answer
    session = fields_of(capabilities["session"])
    for name in _SESSION_METHODS_OF_V2:
        if not is_given(session.get(name)):
            session[name] = _EMPTY
    return {**answer, "capabilities": {**capabilities, "session": session}}


def refuse_initialize(id_: bytes, failure: AgentFailure) -> bytes:
    """Return the error that the agent is not available, with the agent's code and data if the agent refused."""
    code, data = int(ErrorCode.INTERNAL_ERROR), failure.data()
    if isinstance(failure, InitializeRefused):
        code, data = failure.error.code, data if failure.error.data is UNSET else failure.error.data
    return make_error(id_, code, data, sentence=failure.reason)


def describe_bridge(
    settings: BridgeSettings, spec: AgentSpec, access: ViewerAccess, *, can_list: bool
) -> dict[str, Any]:
    """Describe the bridge to a viewer that supports our extensions, or the part of them for relays.

    A viewer of one session sees no other agents or directories. `can_list`: the agent supports session/list.
    """
    is_scoped = access.session_id is not None
    return {
        "version": __version__,
        "agent": spec.name,
        "agents": list_agents([spec] if is_scoped else settings.agents),
        "cwd": "" if is_scoped else settings.cwd,
        "readOnly": access.read_only,
        "questionLinks": not access.read_only,
        "agentLists": can_list and settings.store is None and not access.read_only,
    }


def list_agents(specs: Sequence[AgentSpec]) -> list[dict[str, str]]:
    """Return the names and titles of the agents."""
    return [{"name": spec.name, "title": spec.title or spec.name} for spec in specs]


def _as_v1(params: Raw, version: Version) -> Raw:
    """Return the params of a viewer in the form of version 1, in which the capabilities of all viewers are joined."""
    if version == V2:
        return Raw(encode(initialize_to_v1(msgspec.json.decode(params))))
    fields = fields_of(params)
    is_v1 = bytes(fields.get("protocolVersion", b"")) in (b"0", b"1")
    return params if is_v1 else Raw(encode({**fields, "protocolVersion": V1}))


def _reader_params(params: Raw) -> Raw:
    """Return the params for an agent whose only viewer is read-only. They have no capabilities."""
    version = fields_of(params).get("protocolVersion", Raw(b"1"))
    return Raw(encode({"protocolVersion": version, "clientCapabilities": {}}))


def _join_params(params: Raw, viewers: Sequence[Raw]) -> Raw:
    """Replace the capabilities in params by the joined ones of all viewers. Without viewers, keep them."""
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
            with suppress(msgspec.DecodeError, RecursionError):  # JSON allows numbers that are out of range here
                decoded[key] = msgspec.json.decode(value)
    return decoded


def _join(one: Any, other: Any) -> Any:
    """Join two sets of capabilities recursively. A capability of either set is in the result."""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return {key: _join(left.get(key), right.get(key)) for key in {**left, **right}}
    is_other = one is None or (one is False and other is not None)
    return cast("Any", other if is_other else one)
