"""What can be chosen about a provider's model, and how patiently it is asked."""

import msgspec

MAX_TRIES = 6
"""Requests for one reply: with the delays below, a provider has about half a minute to recover."""

FIRST_DELAY_S = 1.0
"""The wait after the first failure, doubled after each: shorter ones only add to a provider's load."""

MAX_DELAY_S = 30.0
"""The longest wait that we choose ourselves: a person is watching."""

MAX_WAIT_S = 120.0
"""All the waiting for one reply, with what the provider asked for: longer, and a person should decide."""

SILENCE_S = 300.0
"""Nothing at all from the provider for so long counts as a dropped connection; hard thinking can take minutes."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often, and after which waits, a provider is asked again."""

    max_tries: int = MAX_TRIES
    first_delay_s: float = FIRST_DELAY_S
    max_delay_s: float = MAX_DELAY_S
    max_wait_s: float = MAX_WAIT_S


class ProviderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen about a provider's model; what is None is left to the provider."""

    base_url: str | None = None
    """Another address than the provider's own. Keys from the environment are never sent there."""
    api_key: str | None = None
    """None takes the provider's own variable from the environment."""
    headers: dict[str, str] = {}
    max_output_tokens: int | None = None
    temperature: float | None = None
    thought_level: str | None = None
    context_size: int | None = None
    """For models that nobody has data on, local ones above all."""
    silence_s: float = SILENCE_S
    retry: RetryPolicy = RetryPolicy()

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in ("max_output_tokens", "temperature", "thought_level")}
        given = [name for name in ("base_url", "api_key", "headers") if getattr(self, name)]
        return f"ProviderOptions({shown}, given but not shown: {given})"
