"""The table of providers, with their packages, keys and content types, and the options of a model.

It is read before the model library is imported, which takes a second. The library's own values for a model, such as its
context size, replace these once it is loaded.
"""

import os
from importlib.util import find_spec
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import ModelError, UnknownModelError
from dragoman.text.match import closest

THOUGHT_LEVELS = ("off", "minimal", "low", "medium", "high", "max")
"""All thought levels, lowest first. A provider uses the nearest level that the model has."""

DEFAULT_CONTEXT_SIZE = 128_000
"""The default for an unknown model. Most hosted models have at least this."""

LOCAL_CONTEXT_SIZE = 32_768
"""The default for local models and unknown endpoints, which often run with a small context."""

_IMAGE = frozenset({"image"})
_IMAGE_AUDIO = frozenset({"image", "audio"})
_PDF = frozenset({"image", "document"})


class Provider(msgspec.Struct, frozen=True):
    """The facts about a provider that are needed before its library is loaded."""

    title: str
    extra: str
    package: str
    """The import name of the package that the extra installs."""
    variables: tuple[str, ...] = ()
    """Environment variables for the key, the first one set wins. Empty if the library finds the key itself."""
    content_types: frozenset[str] = frozenset()
    keyless: bool = False
    base_url: str | None = None
    openai_like: bool = True
    """Whether it uses OpenAI's chat format, so that base_url can be any address."""
    thinking: tuple[str, ...] = ()
    """Prefixes of model names whose thought level can be chosen, as far as known without the library."""
    addresses: tuple[str, ...] = ()
    """Environment variables that redirect the library to another address."""

    @property
    def needs_key(self) -> bool:
        """Whether requests need a key from us."""
        return bool(self.variables) and not self.keyless


def _like_openai(
    title: str, *variables: str, content_types: frozenset[str] = frozenset(), addresses: tuple[str, ...] = ()
) -> Provider:
    return Provider(title, "openai", "openai", variables, content_types, addresses=addresses)


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
    "litellm": Provider("LiteLLM", "openai", "openai", content_types=_IMAGE, keyless=True),
    "openrouter": _like_openai("OpenRouter", "OPENROUTER_API_KEY", content_types=_IMAGE),
    "azure": Provider(
        "Azure",
        "openai",
        "openai",
        ("AZURE_OPENAI_API_KEY",),
        _IMAGE,
        openai_like=False,
        addresses=("AZURE_OPENAI_ENDPOINT",),
    ),
    "alibaba": _like_openai("Alibaba", "ALIBABA_API_KEY", "DASHSCOPE_API_KEY", content_types=_IMAGE),
    "cerebras": _like_openai("Cerebras", "CEREBRAS_API_KEY"),
    "deepseek": _like_openai("DeepSeek", "DEEPSEEK_API_KEY"),
    "fireworks": _like_openai("Fireworks", "FIREWORKS_API_KEY", content_types=_IMAGE),
    "moonshotai": _like_openai(
        "Moonshot AI", "MOONSHOTAI_API_KEY", content_types=_IMAGE, addresses=("MOONSHOTAI_BASE_URL",)
    ),
    "nebius": _like_openai("Nebius", "NEBIUS_API_KEY", content_types=_IMAGE),
    "ovhcloud": _like_openai("OVHcloud", "OVHCLOUD_API_KEY", content_types=_IMAGE),
    "sambanova": _like_openai(
        "SambaNova", "SAMBANOVA_API_KEY", content_types=_IMAGE, addresses=("SAMBANOVA_BASE_URL",)
    ),
    "together": _like_openai("Together", "TOGETHER_API_KEY", content_types=_IMAGE),
    "vercel": _like_openai("Vercel", "VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN", content_types=_IMAGE),
    "zai": _like_openai("Z.AI", "ZAI_API_KEY", content_types=_IMAGE),
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
    """A parsed `kind:model`."""

    kind: str
    model: str
    provider: Provider

    def __str__(self) -> str:
        return f"{self.kind}:{self.model}"


_FAMILIES = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude-": "anthropic",
    "gemini-": "google",
    "mistral-": "mistral",
    "grok-": "xai",
    "qwen": "ollama",
    "llama": "ollama",
    "gemma": "ollama",
    "deepseek-": "deepseek",
}
"""The likely provider of a model name without one, by its prefix."""


def find_near_name(name: str) -> str | None:
    """Return the model name that the user probably meant, or None."""
    for beginning, provider in _FAMILIES.items():
        if name.startswith(beginning):
            return f"{provider}:{name}"
    kind, _, rest = name.partition(":")
    kinds = {"guide": "guide", "script": "script:FILE"}
    kinds |= {"claude": "anthropic:NAME", "gpt": "openai:NAME", "gemini": "google:NAME"}
    kinds |= {provider: f"{provider}:NAME" for provider in PROVIDERS}
    near = closest(kind, kinds)
    if near is None:
        return None
    return f"{kinds[near].partition(':')[0]}:{rest}" if rest and near != "guide" else kinds[near]


def parse_name(name: str) -> ModelName:
    """Parse a model name. Raises UnknownModelError for an unknown provider."""
    kind, _, model = name.partition(":")
    provider = PROVIDERS.get(kind)
    if provider is None or not model:
        raise UnknownModelError(name, find_near_name(name))
    return ModelName(kind, model, provider)


def check_installed(name: ModelName) -> None:
    """Check that the provider's library is installed. Raises ModelError, which names the extra."""
    for package in ("pydantic_ai", name.provider.package):
        if not _is_installed(package):
            raise ModelError(
                f"{name} needs the library for {name.provider.title}, which is not installed; {how_to_install(name)}"
            )


def how_to_install(name: ModelName) -> str:
    """Return how to install a provider's library."""
    from dragoman.installation import how_to_add

    return how_to_add(name.provider.extra)


def variable_with_key(provider: Provider) -> str | None:
    """Return the first of the provider's variables that is set."""
    return next((variable for variable in provider.variables if os.environ.get(variable)), None)


def key_from_environment(provider: Provider) -> str | None:
    """Return the first key in the provider's variables."""
    variable = variable_with_key(provider)
    return os.environ.get(variable) if variable else None


def login_name(kind: str) -> str:
    """Return the name under which a provider's key is stored, which is its first alias."""
    provider = PROVIDERS[kind]
    return next(first for first, known in PROVIDERS.items() if known is provider)


def address_variable(provider: Provider) -> str | None:
    """Return the set variable that redirects the provider's library. A stored key is not sent to that address."""
    return next((variable for variable in provider.addresses if os.environ.get(variable)), None)


def key_instructions(kind: str) -> str:
    """Return how the user can provide a missing key."""
    provider = PROVIDERS[kind]
    redirect = address_variable(provider)
    text = f"set {' or '.join(provider.variables)} in dragoman's environment"
    if redirect is not None:
        return f"{text} (a key stored by `dragoman login` is not sent to the address in {redirect})"
    return f"{text}, or run `dragoman login {login_name(kind)}` in a terminal"


def thought_levels_by_name(name: ModelName) -> tuple[str, ...]:
    """Return the levels that a model with this name probably has."""
    return THOUGHT_LEVELS if name.model.startswith(name.provider.thinking or ("\0",)) else ()


def shown_url(url: str) -> str:
    """Return an address without user, password and query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that is not a URL"
    return f"{parts.scheme}://{host}{port}{parts.path}"


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name is missing
        return False


MAX_TRIES = 6
"""Requests for one reply. With the delays below, a provider has about half a minute to recover."""

FIRST_DELAY_S = 1.0
"""The delay after the first failure. It doubles each time. Shorter delays only add to the provider's load."""

MAX_DELAY_S = 30.0
"""The longest delay that we choose, because the user is waiting."""

MAX_WAIT_S = 120.0
"""The longest sum of delays for one reply, including the provider's. After that the user should decide."""

SILENCE_S = 300.0
"""A silent provider counts as disconnected after this time. Hard thinking can take minutes."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and after which delays to retry."""

    max_tries: int = MAX_TRIES
    first_delay_s: float = FIRST_DELAY_S
    max_delay_s: float = MAX_DELAY_S
    max_wait_s: float = MAX_WAIT_S


class ProviderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a provider's model. None leaves the choice to the provider."""

    base_url: str | None = None
    """An address other than the provider's. Keys from the environment are never sent there."""
    api_key: str | None = None
    """None uses the provider's environment variable."""
    headers: dict[str, str] = {}
    max_output_tokens: int | None = None
    temperature: float | None = None
    thought_level: str | None = None
    context_size: int | None = None
    """For models without known data, mostly local ones."""
    silence_s: float = SILENCE_S
    retry: RetryPolicy = RetryPolicy()

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in ("max_output_tokens", "temperature", "thought_level")}
        names = [name for name in ("base_url", "api_key", "headers") if getattr(self, name)]
        return f"ProviderOptions({shown}, given but not shown: {names})"
