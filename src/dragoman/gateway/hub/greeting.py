"""The answer to `initialize`: what the agent said, and what the gateway can do for it."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman import __version__
from dragoman.gateway.hub.envelope import encode, fields_of, is_given
from dragoman.gateway.settings import AgentSpec, Settings

_YES = Raw(b"true")
_EMPTY = Raw(b"{}")


class Offers(msgspec.Struct, frozen=True):
    """What the agent itself can do with sessions."""

    load: bool = False
    resume: bool = False
    list: bool = False

    @property
    def can_reopen(self) -> bool:
        """Whether it can take up a session that there was before."""
        return self.load or self.resume


def read_offers(result: Raw) -> Offers:
    """Read what the agent answered."""
    capabilities = fields_of(fields_of(result).get("agentCapabilities", UNSET))
    sessions = fields_of(capabilities.get("sessionCapabilities", UNSET))
    return Offers(
        is_given(capabilities.get("loadSession")), is_given(sessions.get("resume")), is_given(sessions.get("list"))
    )


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


def reader_params(params: Raw) -> Raw:
    """Say to an agent that somebody is there who only looks: what else that one says is not for the agent."""
    version = fields_of(params).get("protocolVersion", Raw(b"1"))
    return Raw(encode({"protocolVersion": version, "clientCapabilities": {}}))


def describe_gateway(settings: Settings, spec: AgentSpec, *, read_only: bool) -> dict[str, Any]:
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
