"""What is there to talk with: providers and their keys, model servers and agents on this machine.

Looking uses nothing: no key is sent anywhere, and no agent is started.
"""

import asyncio
from pathlib import Path

import msgspec

from dragoman.assistant.keys import KeyStore, KeysUnusable
from dragoman.assistant.models.providers import (
    PROVIDERS,
    ModelName,
    Provider,
    check_installed,
    leads_elsewhere,
    login_name,
    variable_with_key,
)
from dragoman.assistant.preferences import PreferenceFile, Preferences
from dragoman.assistant.start.model_servers import ModelServer, find_local_servers
from dragoman.client.agent_environments import find_agents
from dragoman.client.installed_agents import InstalledAgent
from dragoman.errors import ModelFailure

SUGGESTED = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5.4-mini",
    "google": "gemini-flash-latest",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-large-latest",
    "groq": "openai/gpt-oss-120b",
    "xai": "grok-4-latest",
}
"""A model of each provider to begin with: a good one of middle price. A person may name any other."""


class ProviderOffer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider that takes a key."""

    id: str
    title: str
    model: str = ""
    """A model to begin with, where we know one."""
    variable: str = ""
    """The environment variable that has a key, if one has."""
    kept: bool = False
    """Whether `dragoman login` keeps a key."""
    problem: str = ""
    """The reason why it cannot be used here, and what to do."""
    install: str = ""
    """The command that installs its library, if that is missing."""
    restarts: bool = False
    """Whether that command starts dragoman anew; else the library is used as soon as it is there."""


class Offers(msgspec.Struct, frozen=True):
    """All that a person can choose from, and the choices so far."""

    providers: list[ProviderOffer]
    servers: list[ModelServer]
    agents: list[InstalledAgent]
    chosen: Preferences


async def find_offers(home: Path) -> Offers:
    """Look for everything, within a second or so; raises PreferencesUnusable."""
    return Offers(
        servers=await find_local_servers(),
        providers=await asyncio.to_thread(list_providers, home),
        agents=await asyncio.to_thread(find_agents, home),
        chosen=await asyncio.to_thread(PreferenceFile(home).read),
    )


def list_providers(home: Path) -> list[ProviderOffer]:
    """Return the providers: those whose key is there first."""
    keys = KeyStore(home)
    offers = [_offer(kind, keys) for kind, each in PROVIDERS.items() if each.needs_key and login_name(kind) == kind]
    return sorted(offers, key=lambda offer: not (offer.variable or offer.kept))


def _offer(kind: str, keys: KeyStore) -> ProviderOffer:
    provider, model = PROVIDERS[kind], SUGGESTED.get(kind, "")
    name = ModelName(kind, model or "…", provider)
    offer = ProviderOffer(kind, provider.title, model, _variable(provider))
    try:
        kept = keys.find(kind) is not None and leads_elsewhere(provider) is None
        check_installed(name)
    except KeysUnusable as error:
        return msgspec.structs.replace(offer, problem=str(error))
    except ModelFailure as error:
        from dragoman.installation import find_installation

        _, command, restarts = find_installation().instruction(provider.extra)
        return msgspec.structs.replace(offer, problem=str(error), install=command, restarts=restarts)
    return msgspec.structs.replace(offer, kept=kept)


def _variable(provider: Provider) -> str:
    return variable_with_key(provider) or ""
