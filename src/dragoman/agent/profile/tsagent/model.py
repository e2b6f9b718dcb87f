"""The model of a TsAgent file, and its provider."""

import re
from collections.abc import Mapping

import msgspec

from dragoman.agent.profile.model import ADDRESS, ModelOptions, ModelSettings
from dragoman.agent.profile.secret import Secret
from dragoman.agent.profile.tsagent.shape import TsAgentFile, TsAgentSettings
from dragoman.agent.profile.tsagent.table import UnderstoodTable


class _Provider(msgspec.Struct, frozen=True):
    """What a provider of TsAgent is called here, and its keys for the address and the key."""

    name: str
    address: str | None = None
    key: str | None = None
    path: str = ""
    """What follows the address that TsAgent has."""


_PROVIDERS = {
    "claude": _Provider("anthropic", key="ANTHROPIC_API_KEY"),
    "openai": _Provider("openai", key="OPENAI_API_KEY"),
    "gemini": _Provider("google", key="GOOGLE_API_KEY"),
    "ollama": _Provider("ollama", address="OLLAMA_HOST", path="/v1"),
    "docker": _Provider("openai-chat", address="BASE_URL"),
    "bedrock": _Provider("bedrock"),
}
_ELSEWHERE = "op://"


def convert_model(file: TsAgentFile, table: UnderstoodTable) -> ModelSettings | None:
    """Return the model of a file, if it names one that there is here."""
    settings = file.settings
    key = "settings.model" if settings.model else "settings.mostRecentModel"
    kind, _, name = (settings.model or settings.most_recent_model or "").partition(":")
    provider = _PROVIDERS.get(kind.lower())
    _leave_other_providers(file.providers, kind, table)
    if provider is None or not name:
        if kind:
            table.leave(key, "there is no such provider here; use --model or a dragoman.yaml")
        _leave_options(settings, table)
        return None
    table.take(key, f"the model {provider.name}:{name}")
    given = file.providers.get(kind, {})
    return ModelSettings(
        f"{provider.name}:{name}",
        _address(kind, provider, given, table),
        _key(kind, provider, given, table),
        _options(file, table),
    )


def _leave_options(settings: TsAgentSettings, table: UnderstoodTable) -> None:
    given = {"settings.temperature": settings.temperature, "settings.maxOutputTokens": settings.max_output_tokens}
    for key, value in given.items():
        if value is not None:
            table.leave(key, "it belongs to the model, and there is none")


def _leave_other_providers(providers: Mapping[str, Mapping[str, Secret]], used: str, table: UnderstoodTable) -> None:
    for name, settings in providers.items():
        if name != used and settings:
            table.leave(f"providers.{name}", "only the provider of the chosen model counts")


def _address(kind: str, provider: _Provider, given: Mapping[str, Secret], table: UnderstoodTable) -> str | None:
    at = f"providers.{kind}.{provider.address}"
    secret = given.get(provider.address or "")
    if secret is None:
        return None
    if secret.variable is not None or not re.fullmatch(ADDRESS, secret.reveal({})):
        table.leave(at, "expected an http or https address with no name or password in it")
        return None
    address = secret.reveal({}).rstrip("/")
    table.take(at, "the address of the model, base_url")
    return address if address.endswith(provider.path) else address + provider.path


def _key(kind: str, provider: _Provider, given: Mapping[str, Secret], table: UnderstoodTable) -> Secret | None:
    for name in given:
        at = f"providers.{kind}.{name}"
        if name not in (provider.address, provider.key):
            table.leave(at, "the provider's library takes it from the environment")
    secret = given.get(provider.key or "")
    if secret is None:
        return None
    if secret.variable is None and secret.reveal({}).startswith(_ELSEWHERE):
        table.leave(f"providers.{kind}.{provider.key}", "secrets of 1Password are not read; set the variable instead")
        return None
    table.take(f"providers.{kind}.{provider.key}", "the key of the model, api_key")
    return secret


def _options(file: TsAgentFile, table: UnderstoodTable) -> ModelOptions:
    settings = file.settings
    temperature = table.number("settings.temperature", settings.temperature, float, 0.0, "model.options.temperature")
    tokens = table.number(
        "settings.maxOutputTokens", settings.max_output_tokens, int, 1, "model.options.max_output_tokens"
    )
    return ModelOptions(temperature, tokens)
