"""The `initialize` of viewers: answered from the agent's own answer, with the capabilities of the bridge.

The agent is told the capabilities of all connected viewers together. If a viewer comes with more than the agent was
told, and the agent has nothing to lose yet, the agent is started anew.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from dragoman import __version__
from dragoman.bridge.delivery import Viewer, ViewerCapabilities, read_capabilities
from dragoman.bridge.envelope import encode, fields_of, is_given, make_error, make_result
from dragoman.bridge.registry import Announcements, SessionRegistry
from dragoman.bridge.router.questions import Questions
from dragoman.bridge.settings import AgentSpec, Settings
from dragoman.bridge.supervisor import AgentFailure, AgentSupervisor, InitializeRefused
from dragoman.errors import ErrorCode
from dragoman.wire import Message

_NO_VERSION = {"path": "params.protocolVersion", "problem": "this is no version", "expected": "an integer, such as 1"}

_YES = Raw(b"true")
_EMPTY = Raw(b"{}")
_OURS: dict[str, Any] = {"session": {"notices": {}}}
"""Capabilities of the bridge itself: a viewer that does not show notices gets each as a thought."""

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
        """The params of each viewer that may do more than read."""
        self._held: dict[Viewer, list[bytes]] = {}
        """Messages of viewers whose `initialize` waits for the agent."""

    def is_pending(self, viewer: Viewer) -> bool:
        """Tell whether the `initialize` of a viewer waits for the agent."""
        return viewer in self._held

    def initialize(self, viewer: Viewer, id_: bytes, message: Message, answer: Answer) -> None:
        """Answer `initialize`, once the agent has answered its own."""
        if not bytes(fields_of(message.params).get("protocolVersion", b"")).isdigit():
            answer(make_error(id_, ErrorCode.INVALID_PARAMS, _NO_VERSION))
            return
        capabilities = read_capabilities(message.params)
        self._keep_params(viewer, message.params, is_reader=viewer.read_only or capabilities.read_only)

        def succeed() -> None:
            held = self._held.pop(viewer, [])
            self._welcome(viewer, id_, capabilities, answer)
            _receive_all(viewer, held)

        def fail(failure: AgentFailure) -> None:
            held = self._held.pop(viewer, [])
            self._params.pop(viewer, None)  # or the agent would be told of it again, and might end by it again
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

    def viewer_left(self, viewer: Viewer) -> None:
        """Forget a viewer."""
        self._params.pop(viewer, None)

    def _keep_params(self, viewer: Viewer, params: Raw, *, is_reader: bool) -> None:
        if not is_reader:
            self._params[viewer] = Raw(bytes(params))
        self._supervisor.initialize.propose(self._params.get(viewer) or _reader_params(params), is_reader=is_reader)

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
        result = self._supervisor.initialize.result or _EMPTY
        viewer.read_only = viewer.read_only or capabilities.read_only
        viewer.capabilities = capabilities
        own = None
        if capabilities.extensions:
            own = describe_bridge(self._settings, self._spec, read_only=viewer.read_only)
        extra = {"connectionId": viewer.id} if viewer.over_http else {}
        answer(make_result(id_, answer_initialize(result, own, **extra)))
        self._announcements.welcome(viewer)


def _receive_all(viewer: Viewer, lines: list[bytes]) -> None:
    for line in lines:
        viewer.receive(line)


def answer_initialize(result: Raw, own: dict[str, Any] | None, **extra: Any) -> dict[str, Any]:
    """Make a viewer's answer of the agent's: sessions that are here can be loaded, resumed and listed."""
    answer: dict[str, Any] = dict(fields_of(result))
    capabilities = fields_of(answer.get("agentCapabilities", UNSET))
    sessions = fields_of(capabilities.get("sessionCapabilities", UNSET))
    for name in ("list", "resume"):
        if not is_given(sessions.get(name)):
            sessions[name] = _EMPTY
    capabilities["loadSession"] = _YES
    capabilities["sessionCapabilities"] = Raw(encode(sessions))
    answer["agentCapabilities"] = capabilities
    if own is not None:
        answer["_meta"] = {**fields_of(answer.get("_meta", UNSET)), "dragoman": own}
    return {**answer, **extra}


def refuse_initialize(id_: bytes, failure: AgentFailure) -> bytes:
    """Answer that the agent is not there; if the agent itself refused, with its own code and data."""
    code, data = int(ErrorCode.INTERNAL_ERROR), failure.data()
    if isinstance(failure, InitializeRefused):
        code, data = failure.error.code, data if failure.error.data is UNSET else failure.error.data
    return make_error(id_, code, data, sentence=failure.reason)


def describe_bridge(settings: Settings, spec: AgentSpec, *, read_only: bool) -> dict[str, Any]:
    """Describe the bridge to a viewer that knows our extensions."""
    return {
        "version": __version__,
        "agent": spec.name,
        "agents": list_agents(settings.agents),
        "cwd": settings.cwd,
        "readOnly": read_only,
    }


def list_agents(specs: Sequence[AgentSpec]) -> list[dict[str, str]]:
    """Name the agents to choose from."""
    return [{"name": spec.name, "title": spec.title or spec.name} for spec in specs]


def _reader_params(params: Raw) -> Raw:
    """Make the params for an agent whose only viewer may only read: no capability of it is for the agent."""
    version = fields_of(params).get("protocolVersion", Raw(b"1"))
    return Raw(encode({"protocolVersion": version, "clientCapabilities": {}}))


def _join_params(params: Raw, viewers: Sequence[Raw]) -> Raw:
    """Join the capabilities of all viewers; without any viewer, those of the last params stay."""
    own = _capabilities_of(params)
    joined = _join(own if not viewers else reduce(_join, map(_capabilities_of, viewers)), _OURS)
    if joined == own:
        return params
    fields = fields_of(params)
    meta = fields_of(fields.get("clientCapabilities", UNSET)).get("_meta")
    capabilities = joined if meta is None else {**joined, "_meta": meta}
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
