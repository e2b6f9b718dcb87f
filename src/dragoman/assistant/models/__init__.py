"""The models that an agent can talk with, each by its name."""

from typing import TYPE_CHECKING

from dragoman.errors import UnknownModel

if TYPE_CHECKING:
    from dragoman.assistant.models.model import Model
    from dragoman.assistant.models.providers import ProviderOptions
    from dragoman.assistant.profile.settings import ModelSettings

SCRIPT_TAKES = frozenset({"image", "audio"})
"""A script answers any prompt."""


def find_model(name: str, settings: "ModelSettings | None" = None) -> "Model":
    """Return the named model, with the settings of an agent file if there are any; nothing heavy is imported yet.

    Raises UnknownModel, ScriptError for a bad script, ModelFailure when a library is not installed, and
    MissingVariable when the settings name one that is not set.
    """
    kind, _, rest = name.partition(":")
    if name == "guide":
        from dragoman.assistant.models.guide import GuideModel

        return GuideModel()
    if kind == "script" and rest:
        from pathlib import Path

        from dragoman.assistant.models.script import load_script

        return load_script(Path(rest))
    if kind == "local" and rest:
        from pathlib import Path

        from dragoman.assistant.models.local import LocalOptions, local_model

        options = settings.options if settings else None
        return local_model(
            Path(rest), LocalOptions(options.temperature, options.max_output_tokens) if options else None
        )
    if not rest:
        from dragoman.assistant.models.providers import find_near_name

        raise UnknownModel(name, find_near_name(name))
    from dragoman.assistant.models.provider import provider_model

    return provider_model(name, _provider_options(settings))


def takes_by_name(name: str | None) -> frozenset[str]:
    """Return the kinds of content beyond text that a model takes, as far as its name tells; imports nothing heavy."""
    kind = (name or "").partition(":")[0]
    if kind == "script":
        return SCRIPT_TAKES
    from dragoman.assistant.models.providers import PROVIDERS

    return PROVIDERS[kind].takes if kind in PROVIDERS else frozenset()


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
