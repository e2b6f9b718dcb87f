"""The available models and agents: providers and their keys, model servers, and agents on this machine.

The search sends no key and starts no agent.
"""

import asyncio
from pathlib import Path

import msgspec

from dragoman.assistant.keys import KeysFileError, KeyStore
from dragoman.assistant.models.providers import (
    PROVIDERS,
    ModelName,
    Provider,
    address_variable,
    check_installed,
    login_name,
    variable_with_key,
)
from dragoman.assistant.preferences import PreferenceFile, Preferences
from dragoman.assistant.start.model_servers import ModelServer, find_local_servers
from dragoman.catalog.installed import find_agents
from dragoman.catalog.on_path import InstalledAgent
from dragoman.errors import ModelError

SUGGESTED = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5.4-mini",
    "google": "gemini-flash-latest",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-large-latest",
    "groq": "openai/gpt-oss-120b",
    "xai": "grok-4-latest",
}
"""A first model for each provider, good and of medium price. The user may name any other."""


class ProviderOffer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider that needs a key."""

    id: str
    title: str
    model: str = ""
    """A suggested model, if we know one."""
    variable: str = ""
    """The environment variable that contains a key, if any."""
    kept: bool = False
    """Whether `dragoman login` has stored a key."""
    problem: str = ""
    """Why it cannot be used here, and what to do."""
    install: str = ""
    """The command that installs its library, if it is missing."""
    restarts: bool = False
    """Whether that command restarts dragoman. Otherwise the library is used once it is installed."""


class Offers(msgspec.Struct, frozen=True):
    """All choices, and the current one."""

    providers: list[ProviderOffer]
    servers: list[ModelServer]
    agents: list[InstalledAgent]
    chosen: Preferences


async def find_offers(home: Path) -> Offers:
    """Find everything, within about a second. Raises PreferencesFileError."""
    return Offers(
        servers=await find_local_servers(),
        providers=await asyncio.to_thread(list_providers, home),
        agents=await asyncio.to_thread(find_agents, home),
        chosen=await asyncio.to_thread(PreferenceFile(home).read),
    )


def list_providers(home: Path) -> list[ProviderOffer]:
    """Return the providers. Those with a key come first."""
    keys = KeyStore(home)
    offers = [_offer(kind, keys) for kind, each in PROVIDERS.items() if each.needs_key and login_name(kind) == kind]
    return sorted(offers, key=lambda offer: not (offer.variable or offer.kept))


def _offer(kind: str, keys: KeyStore) -> ProviderOffer:
    provider, model = PROVIDERS[kind], SUGGESTED.get(kind, "")
    name = ModelName(kind, model or "…", provider)
    offer = ProviderOffer(kind, provider.title, model, _variable(provider))
    try:
        kept = keys.find(kind) is not None and address_variable(provider) is None
        check_installed(name)
    except KeysFileError as error:
        return msgspec.structs.replace(offer, problem=str(error))
    except ModelError as error:
        from dragoman.installation import find_installation

        _, command, restarts = find_installation().instruction(provider.extra)
        return msgspec.structs.replace(offer, problem=str(error), install=command, restarts=restarts)
    return msgspec.structs.replace(offer, kept=kept)


def _variable(provider: Provider) -> str:
    return variable_with_key(provider) or ""
