"""Connects a model. It gets one test question, and only after its answer the key and the choice are stored.

The key is stored like with `dragoman login`, under the name of its provider or the address of its server. It is never
part of an answer or error. `protocol.secrecy` redacts it in messages that are shown or recorded.
"""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import msgspec

from dragoman.assistant.keys import KeyStore, check_key, with_keys
from dragoman.assistant.models.message import UserMessage
from dragoman.assistant.models.model import ReplyRequest, ReplyRetry, ReplyText
from dragoman.assistant.models.provider import provider_model
from dragoman.assistant.models.providers import (
    PROVIDERS,
    ProviderOptions,
    RetryPolicy,
    address_variable,
    login_name,
    parse_name,
)
from dragoman.assistant.options import GUIDE
from dragoman.assistant.preferences import ChosenModel, PreferenceFile
from dragoman.assistant.start.model_servers import check_address, list_models
from dragoman.errors import DragomanError, MissingKeyError, ModelError
from dragoman.protocol import v1
from dragoman.text import clean_text
from dragoman.text.secret import SecretHider

TEST_PROMPT = "This is a test of the connection. Answer with one short sentence: which model are you?"

TEST_S = 60.0
"""A model that is loaded first may need most of this time."""
MAX_SHOWN_CHARS = 400
"""Shown characters of the answer, which only proves that there is one."""


class ModelConnectError(DragomanError):
    """A model could not be connected. The message is the reason, and nothing was stored."""


class Wish(msgspec.Struct, frozen=True, rename="camel"):
    """A model that the user wants to connect. `guide` needs no other field."""

    provider: str
    model: str = ""
    """If empty: the model that we suggest, or the first that the server lists."""
    api_key: str = ""
    base_url: str = ""

    def __repr__(self) -> str:
        return f"Wish({self.provider!r}, {self.model!r}, given but not shown: {[self.api_key and 'api_key']})"


class Connected(msgspec.Struct, frozen=True, rename="camel"):
    """A model that answered and was stored."""

    model: str
    answer: str = ""
    duration_ms: int = 0
    base_url: str | None = None


async def connect_model(wish: Wish, home: Path) -> Connected:
    """Ask a model one question and store it. Raises ModelConnectError with the reason."""
    try:
        connected = await _try(wish, home)
        await asyncio.to_thread(_save, wish, connected, home)
    except MissingKeyError as error:
        raise ModelConnectError(error.problem) from None
    except DragomanError as error:
        raise ModelConnectError(str(error)) from None
    return connected


async def _try(wish: Wish, home: Path) -> Connected:
    if wish.provider == GUIDE:
        return Connected(GUIDE)
    key = wish.api_key.strip()
    if key:
        check_key(key)
    base_url = check_address(wish.base_url) if wish.base_url else None
    name = await _complete_name(wish, base_url, key)
    options = ProviderOptions(base_url=base_url, api_key=key or None, retry=RetryPolicy(max_tries=1))
    return await _ask(name, options, home)


async def _complete_name(wish: Wish, base_url: str | None, key: str) -> str:
    """Return the full name of the model. Raises ModelConnectError, NoModelServerError or UnknownModelError."""
    from dragoman.assistant.start.offers import SUGGESTED

    # Reject combinations that would send a key to the wrong server before anything is sent.
    provider = PROVIDERS.get(wish.provider)
    if provider is None:
        raise ModelConnectError(f"the provider {wish.provider!r} is unknown; expected one of {', '.join(PROVIDERS)}")
    if base_url is not None and not provider.openai_like:
        raise ModelConnectError(
            f"{provider.title} does not support another address; leave it out, or choose the OpenAI-compatible server"
        )
    if key and base_url is None and (variable := address_variable(provider)):
        raise ModelConnectError(
            f"{variable} sets another address for {provider.title}, and stored keys are not sent there; unset it, or "
            f"set {' or '.join(provider.variables)} as well"
        )
    # A server lists its models. For a provider, we suggest one.
    model = wish.model.strip()
    if not model and base_url is not None:
        model = (await list_models(base_url, key or None))[0]
    name = f"{wish.provider}:{model or SUGGESTED.get(wish.provider, '')}"
    if name.endswith(":"):
        raise ModelConnectError(f"no model given; name a model of {provider.title}")
    parse_name(name)
    return name


async def _ask(name: str, options: ProviderOptions, home: Path) -> Connected:
    """Return the model's answer. Raises ModelError, or ModelConnectError after a timeout."""
    model = with_keys(provider_model(name, options), KeyStore(home))
    began, text = time.monotonic(), ""
    request = ReplyRequest([UserMessage([v1.TextContent(text=TEST_PROMPT)])])
    try:
        async with asyncio.timeout(TEST_S), aclosing(model.start().reply(request)) as parts:
            async for part in parts:
                if isinstance(part, ReplyText):
                    text += part.text
                elif isinstance(part, ReplyRetry):
                    raise ModelError(part.reason)
    except TimeoutError:
        raise ModelConnectError(
            f"{name} did not answer completely within {TEST_S:.0f} s; try again, or choose another"
        ) from None
    finally:
        await model.close()
    answer = SecretHider([options.api_key] if options.api_key else []).clean(clean_text(text.strip()))
    if not answer:
        raise ModelConnectError(f"{name} sent an empty answer; choose another model")
    return Connected(name, answer[:MAX_SHOWN_CHARS], round((time.monotonic() - began) * 1000), options.base_url)


def _save(wish: Wish, connected: Connected, home: Path) -> None:
    """Store the key as `dragoman login` does, then the choice. Raises KeysFileError or PreferencesFileError."""
    if key := wish.api_key.strip():
        KeyStore(home).save(connected.base_url or login_name(wish.provider), key)
    PreferenceFile(home).choose_model(ChosenModel(connected.model, connected.base_url))
