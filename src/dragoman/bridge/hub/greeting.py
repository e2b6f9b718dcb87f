"""The answer to `initialize`: what the agent said, and what the bridge can do for it."""

from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw

from dragoman import __version__
from dragoman.bridge.envelope import encode, fields_of, is_given, make_error
from dragoman.bridge.settings import AgentSpec, Settings
from dragoman.bridge.supervisor import AgentFailure, InitializeRefused
from dragoman.errors import ErrorCode

_YES = Raw(b"true")
_EMPTY = Raw(b"{}")
_OURS: dict[str, Any] = {"session": {"notices": {}}}
"""What we can do whoever is there: a viewer that does not show notices gets each as a thought."""


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
    """Answer that the agent is not there; if it is the agent that refused, by its own code and data."""
    code, data = int(ErrorCode.INTERNAL_ERROR), failure.data()
    if isinstance(failure, InitializeRefused):
        code, data = failure.error.code, data if failure.error.data is UNSET else failure.error.data
    return make_error(id_, code, data, sentence=failure.reason)


def reader_params(params: Raw) -> Raw:
    """Say to an agent that somebody is there who only looks: what else that one says is not for the agent."""
    version = fields_of(params).get("protocolVersion", Raw(b"1"))
    return Raw(encode({"protocolVersion": version, "clientCapabilities": {}}))


def join_params(params: Raw, greetings: Sequence[Raw]) -> Raw:
    """Say to an agent what those who are there can do between them; without anybody, what was said last."""
    own = _capabilities_of(params)
    joined = _join(own if not greetings else reduce(_join, map(_capabilities_of, greetings)), _OURS)
    if joined == own:
        return params
    fields = fields_of(params)
    meta = fields_of(fields.get("clientCapabilities", UNSET)).get("_meta")
    capabilities = joined if meta is None else {**joined, "_meta": meta}
    return Raw(encode({**fields, "clientCapabilities": capabilities}))


def offers_more(greeting: Raw, params: Raw) -> bool:
    """Tell whether a viewer can do something that the agent was not told of."""
    told = _capabilities_of(params)
    return _join(told, _capabilities_of(greeting)) != told


def _capabilities_of(params: Raw) -> dict[str, Any]:
    fields = fields_of(fields_of(params).get("clientCapabilities", UNSET))
    decoded: dict[str, Any] = {}
    for key, value in fields.items():
        if key != "_meta":
            with suppress(msgspec.DecodeError, RecursionError):  # a number out of range is JSON, and means nothing here
                decoded[key] = msgspec.json.decode(value)
    return decoded


def _join(one: Any, other: Any) -> Any:
    """Join what two can do: either is enough, down to the last detail."""
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return {key: _join(ours.get(key), theirs.get(key)) for key in {**ours, **theirs}}
    is_other = one is None or (one is False and other is not None)
    return cast("Any", other if is_other else one)


def describe_bridge(settings: Settings, spec: AgentSpec, *, read_only: bool) -> dict[str, Any]:
    """Say what a viewer that knows our extensions wants to know."""
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
