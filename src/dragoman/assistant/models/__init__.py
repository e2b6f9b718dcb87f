"""The models that an agent can use, by name."""

from typing import TYPE_CHECKING

from dragoman.errors import UnknownModelError

if TYPE_CHECKING:
    from dragoman.assistant.models.model import Model
    from dragoman.assistant.models.providers import ProviderOptions
    from dragoman.assistant.profile.settings import ModelSettings

SCRIPT_CONTENT_TYPES = frozenset({"image", "audio"})
"""A script accepts any prompt."""


def find_model(name: str, settings: "ModelSettings | None" = None) -> "Model":
    """Return the named model, with the agent file's settings if any. Imports nothing heavy.

    Raises UnknownModelError, ScriptError for an invalid script, ModelError if a library is not installed, or
    MissingVariableError if the settings name an unset variable.
    """
    kind, _, rest = name.partition(":")
    if name == "guide":
        from dragoman.assistant.models.guide import GuideModel

        return GuideModel()
    if kind == "script" and rest:
        from pathlib import Path

        from dragoman.assistant.models.script import load_script

        return load_script(Path(rest))
    if not rest:
        from dragoman.assistant.models.providers import find_near_name

        raise UnknownModelError(name, find_near_name(name))
    from dragoman.assistant.models.provider import provider_model

    return provider_model(name, _provider_options(settings))


def content_types_by_name(name: str | None) -> frozenset[str]:
    """Return the content types that a model accepts besides text, as far as its name tells. Imports nothing heavy."""
    kind = (name or "").partition(":")[0]
    if kind == "script":
        return SCRIPT_CONTENT_TYPES
    from dragoman.assistant.models.providers import PROVIDERS

    return PROVIDERS[kind].content_types if kind in PROVIDERS else frozenset()


def _provider_options(settings: "ModelSettings | None") -> "ProviderOptions | None":
    from dragoman.assistant.models.providers import ProviderOptions

    if settings is None:
        return None
    options = settings.options
    return ProviderOptions(
        base_url=settings.base_url,
        api_key=settings.api_key.reveal() if settings.api_key else None,
        headers={name: secret.reveal() for name, secret in options.headers.items()},
        temperature=options.temperature,
        max_output_tokens=options.max_output_tokens,
        thought_level=options.thought_level,
    )
