"""The providers by name: each one's package, the source of its key, the content that its models take; and options.

This table is read before the model library is imported, which takes a second; the library's own values for a model
(its context, whether it thinks) replace these once it is there.
"""

import os
from importlib.util import find_spec
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import ModelFailure, UnknownModel
from dragoman.text.match import closest

THOUGHT_LEVELS = ("off", "minimal", "low", "medium", "high", "max")
"""Every level that can be asked for, least first; providers take the nearest that the model has."""

DEFAULT_CONTEXT_SIZE = 128_000
"""The default for an unknown model: most hosted ones have at least this."""

LOCAL_CONTEXT_SIZE = 32_768
"""The same for local ones and unknown endpoints, whose servers are often started with a small window."""

_IMAGE = frozenset({"image"})
_IMAGE_AUDIO = frozenset({"image", "audio"})
_PDF = frozenset({"image", "document"})


class Provider(msgspec.Struct, frozen=True):
    """The facts about a provider that are needed before its library is there."""

    title: str
    extra: str
    package: str
    """The package that the extra installs, by its import name."""
    variables: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first found counts; none when the library finds its own way."""
    takes: frozenset[str] = frozenset()
    keyless: bool = False
    base_url: str | None = None
    openai_like: bool = True
    """It speaks OpenAI's chat format, so that any address can be given."""
    thinking: tuple[str, ...] = ()
    """How the names of models begin whose thinking can be chosen, as far as one can tell without the library."""
    addresses: tuple[str, ...] = ()
    """Environment variables by which the library is led to another address than the provider's own."""

    @property
    def needs_key(self) -> bool:
        """Whether nothing can be asked without a key that we pass on."""
        return bool(self.variables) and not self.keyless


def _like_openai(
    title: str, *variables: str, takes: frozenset[str] = frozenset(), addresses: tuple[str, ...] = ()
) -> Provider:
    return Provider(title, "openai", "openai", variables, takes, addresses=addresses)


_OPENAI = Provider(
    "OpenAI",
    "openai",
    "openai",
    ("OPENAI_API_KEY",),
    _PDF,
    thinking=("gpt-5", "gpt-6", "o1", "o3", "o4"),
    addresses=("OPENAI_BASE_URL",),
)

PROVIDERS = {
    "anthropic": Provider(
        "Anthropic",
        "anthropic",
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        _PDF,
        openai_like=False,
        thinking=("claude-3-7", "claude-opus", "claude-sonnet", "claude-haiku", "claude-fable", "claude-mythos"),
        addresses=("ANTHROPIC_BASE_URL",),
    ),
    "openai": _OPENAI,
    "openai-chat": _OPENAI,
    "openai-responses": _OPENAI,
    "google": Provider(
        "Google",
        "google",
        "google.genai",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        _IMAGE_AUDIO | _PDF,
        openai_like=False,
        thinking=("gemini-2.5", "gemini-3"),
        addresses=("GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"),
    ),
    "ollama": Provider(
        "Ollama",
        "openai",
        "openai",
        ("OLLAMA_API_KEY",),
        _IMAGE,
        keyless=True,
        base_url="http://localhost:11434/v1",
        addresses=("OLLAMA_BASE_URL",),
        thinking=("qwen3", "deepseek-r1", "gpt-oss", "magistral"),
    ),
    "vllm": Provider("vLLM", "openai", "openai", ("VLLM_API_KEY",), _IMAGE, keyless=True),
    "litellm": Provider("LiteLLM", "openai", "openai", takes=_IMAGE, keyless=True),
    "openrouter": _like_openai("OpenRouter", "OPENROUTER_API_KEY", takes=_IMAGE),
    "azure": Provider(
        "Azure",
        "openai",
        "openai",
        ("AZURE_OPENAI_API_KEY",),
        _IMAGE,
        openai_like=False,
        addresses=("AZURE_OPENAI_ENDPOINT",),
    ),
    "alibaba": _like_openai("Alibaba", "ALIBABA_API_KEY", "DASHSCOPE_API_KEY", takes=_IMAGE),
    "cerebras": _like_openai("Cerebras", "CEREBRAS_API_KEY"),
    "deepseek": _like_openai("DeepSeek", "DEEPSEEK_API_KEY"),
    "fireworks": _like_openai("Fireworks", "FIREWORKS_API_KEY", takes=_IMAGE),
    "moonshotai": _like_openai("Moonshot AI", "MOONSHOTAI_API_KEY", takes=_IMAGE, addresses=("MOONSHOTAI_BASE_URL",)),
    "nebius": _like_openai("Nebius", "NEBIUS_API_KEY", takes=_IMAGE),
    "ovhcloud": _like_openai("OVHcloud", "OVHCLOUD_API_KEY", takes=_IMAGE),
    "sambanova": _like_openai("SambaNova", "SAMBANOVA_API_KEY", takes=_IMAGE, addresses=("SAMBANOVA_BASE_URL",)),
    "together": _like_openai("Together", "TOGETHER_API_KEY", takes=_IMAGE),
    "vercel": _like_openai("Vercel", "VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN", takes=_IMAGE),
    "zai": _like_openai("Z.AI", "ZAI_API_KEY", takes=_IMAGE),
    "groq": Provider(
        "Groq", "groq", "groq", ("GROQ_API_KEY",), _IMAGE, openai_like=False, addresses=("GROQ_BASE_URL",)
    ),
    "mistral": Provider("Mistral", "mistral", "mistralai", ("MISTRAL_API_KEY",), _IMAGE, openai_like=False),
    "cohere": Provider(
        "Cohere", "cohere", "cohere", ("CO_API_KEY",), openai_like=False, addresses=("CO_BASE_URL", "CO_API_URL")
    ),
    "xai": Provider("xAI", "xai", "xai_sdk", ("XAI_API_KEY",), _IMAGE, openai_like=False),
    "huggingface": Provider(
        "Hugging Face",
        "huggingface",
        "huggingface_hub",
        ("HF_TOKEN",),
        _IMAGE,
        openai_like=False,
        addresses=("HF_ENDPOINT", "HF_INFERENCE_ENDPOINT"),
    ),
    "bedrock": Provider("Bedrock", "bedrock", "boto3", (), _PDF, keyless=True, openai_like=False),
}


class ModelName(msgspec.Struct, frozen=True):
    """`kind:model`, taken apart."""

    kind: str
    model: str
    provider: Provider

    def __str__(self) -> str:
        return f"{self.kind}:{self.model}"


def find_near_name(name: str) -> str | None:
    """Return the model that an unknown name is near to, if there is one."""
    kind, _, rest = name.partition(":")
    kinds = {"guide": "guide", "script": "script:FILE", "local": "local:FILE"}
    kinds |= {provider: f"{provider}:NAME" for provider in PROVIDERS}
    near = closest(kind, kinds)
    if near is None:
        return None
    return f"{near}:{rest}" if rest and near != "guide" else kinds[near]


def parse_name(name: str) -> ModelName:
    """Take a model's name apart; raises UnknownModel when no provider has that name."""
    kind, _, model = name.partition(":")
    provider = PROVIDERS.get(kind)
    if provider is None or not model:
        raise UnknownModel(name, find_near_name(name))
    return ModelName(kind, model, provider)


def check_installed(name: ModelName) -> None:
    """Check that the provider's library is installed; raises ModelFailure, which names the extra."""
    for package in ("pydantic_ai", name.provider.package):
        if not _is_installed(package):
            raise ModelFailure(
                f"{name} needs dragoman's extra {name.provider.extra!r}, the library that talks with "
                f"{name.provider.title}, which is not installed; {how_to_install(name)}"
            )


def how_to_install(name: ModelName) -> str:
    """Say how the library of a provider is installed."""
    from dragoman.installation import how_to_add

    return how_to_add(name.provider.extra)


def variable_with_key(provider: Provider) -> str | None:
    """Return the first of the provider's variables that holds a key."""
    return next((variable for variable in provider.variables if os.environ.get(variable)), None)


def key_from_environment(provider: Provider) -> str | None:
    """Return the first key that the provider's variables hold."""
    variable = variable_with_key(provider)
    return os.environ.get(variable) if variable else None


def login_name(kind: str) -> str:
    """Return the name under which a provider's key is kept: the first of its kinds."""
    provider = PROVIDERS[kind]
    return next(first for first, known in PROVIDERS.items() if known is provider)


def leads_elsewhere(provider: Provider) -> str | None:
    """Return the variable that leads the provider's library to another address; a kept key is not sent there."""
    return next((variable for variable in provider.addresses if os.environ.get(variable)), None)


def how_to_give_key(kind: str) -> str:
    """Say how a person can give a missing key."""
    provider = PROVIDERS[kind]
    elsewhere = leads_elsewhere(provider)
    words = f"set {' or '.join(provider.variables)} in the environment that dragoman is started in"
    if elsewhere is not None:
        return f"{words} (a key that is kept by `dragoman login` is not sent to where {elsewhere} leads)"
    return f"{words}, or run `dragoman login {login_name(kind)}` in a terminal"


def thought_levels_by_name(name: ModelName) -> tuple[str, ...]:
    """Return the levels that the model probably has, judged by its name alone."""
    return THOUGHT_LEVELS if name.model.startswith(name.provider.thinking or ("\0",)) else ()


def shown_url(url: str) -> str:
    """Return an address as it may be shown: without user, password and query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that is no URL"
    return f"{parts.scheme}://{host}{port}{parts.path}"


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name is missing
        return False


MAX_TRIES = 6
"""Requests for one reply: with the delays below, a provider has about half a minute to recover."""

FIRST_DELAY_S = 1.0
"""The wait after the first failure, doubled after each: shorter ones only add to a provider's load."""

MAX_DELAY_S = 30.0
"""The longest wait that we choose ourselves: a person is watching."""

MAX_WAIT_S = 120.0
"""Longest sum of waits for one reply, the provider's own wishes included; after that a person should decide."""

SILENCE_S = 300.0
"""Nothing at all from the provider for so long counts as a dropped connection; hard thinking can take minutes."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often, and after which waits, a provider is asked again."""

    max_tries: int = MAX_TRIES
    first_delay_s: float = FIRST_DELAY_S
    max_delay_s: float = MAX_DELAY_S
    max_wait_s: float = MAX_WAIT_S


class ProviderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a provider's model; None leaves the choice to the provider."""

    base_url: str | None = None
    """Another address than the provider's own. Keys from the environment are never sent there."""
    api_key: str | None = None
    """None takes the provider's own variable from the environment."""
    headers: dict[str, str] = {}
    max_output_tokens: int | None = None
    temperature: float | None = None
    thought_level: str | None = None
    context_size: int | None = None
    """For models without known data, local ones above all."""
    silence_s: float = SILENCE_S
    retry: RetryPolicy = RetryPolicy()

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in ("max_output_tokens", "temperature", "thought_level")}
        given = [name for name in ("base_url", "api_key", "headers") if getattr(self, name)]
        return f"ProviderOptions({shown}, given but not shown: {given})"
