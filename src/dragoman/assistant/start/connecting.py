"""Connecting a model: one small question to it, and only after its answer the key and the choice are kept.

The key is kept where `dragoman login` keeps it, under the name of its provider or under the address of its server. It
is in no answer and no error; `protocol.secrecy` hides it in messages that are shown or written down.
"""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import msgspec

from dragoman.assistant.keys import KeyStore, check_key, give_keys
from dragoman.assistant.models.message import UserMessage
from dragoman.assistant.models.model import ModelRequest, ReplyRetry, ReplyText
from dragoman.assistant.models.provider import provider_model
from dragoman.assistant.models.providers import (
    PROVIDERS,
    ProviderOptions,
    RetryPolicy,
    leads_elsewhere,
    login_name,
    parse_name,
)
from dragoman.assistant.options import GUIDE
from dragoman.assistant.preferences import ChosenModel, PreferenceFile
from dragoman.assistant.start.model_servers import check_address, list_models
from dragoman.errors import DragomanError, MissingKey, ModelFailure
from dragoman.protocol import v1
from dragoman.text import clean_text
from dragoman.text.secret import SecretHider

TEST_PROMPT = "This is a test of the connection. Answer with one short sentence: which model are you?"

TEST_S = 60.0
"""A model that has to be loaded first may need most of it."""
MAX_SHOWN_CHARS = 400
"""Of the answer: it only has to show that there is one."""


class NotConnected(DragomanError):
    """A model could not be connected; the message is the reason, and nothing was kept."""


class Wish(msgspec.Struct, frozen=True, rename="camel"):
    """A model that a person wants to connect; `guide` needs nothing more."""

    provider: str
    model: str = ""
    """Without it, the model that we suggest, or the first that the server at the address lists."""
    api_key: str = ""
    base_url: str = ""

    def __repr__(self) -> str:
        return f"Wish({self.provider!r}, {self.model!r}, given but not shown: {[self.api_key and 'api_key']})"


class Connected(msgspec.Struct, frozen=True, rename="camel"):
    """A model that answered, and was kept."""

    model: str
    answer: str = ""
    duration_ms: int = 0
    base_url: str | None = None


async def connect_model(wish: Wish, home: Path) -> Connected:
    """Ask a model one question, and keep it; raises NotConnected, with the reason."""
    try:
        connected = await _try(wish, home)
        await asyncio.to_thread(_keep, wish, connected, home)
    except MissingKey as error:
        raise NotConnected(error.problem) from None
    except DragomanError as error:
        raise NotConnected(str(error)) from None
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
    """Return the whole name of the model; raises NotConnected, ServerUnusable and UnknownModel."""
    from dragoman.assistant.start.offers import SUGGESTED

    provider = PROVIDERS.get(wish.provider)
    if provider is None:
        raise NotConnected(f"there is no provider {wish.provider!r}; expected one of {', '.join(PROVIDERS)}")
    if base_url is not None and not provider.openai_like:
        raise NotConnected(f"{provider.title} takes no other address; leave it out, or choose OpenAI-compatible")
    if key and base_url is None and (variable := leads_elsewhere(provider)):
        raise NotConnected(
            f"{variable} leads {provider.title} to another address, where a kept key is not sent; unset it, or set "
            f"{' or '.join(provider.variables)} beside it"
        )
    model = wish.model.strip()
    if not model and base_url is not None:
        model = (await list_models(base_url, key or None))[0]
    name = f"{wish.provider}:{model or SUGGESTED.get(wish.provider, '')}"
    if name.endswith(":"):
        raise NotConnected(f"name a model of {provider.title}")
    parse_name(name)
    return name


async def _ask(name: str, options: ProviderOptions, home: Path) -> Connected:
    """Return the model's answer; raises ModelFailure, and NotConnected if it takes too long."""
    model = give_keys(provider_model(name, options), KeyStore(home))
    began, said = time.monotonic(), ""
    request = ModelRequest([UserMessage([v1.TextContent(text=TEST_PROMPT)])])
    try:
        async with asyncio.timeout(TEST_S), aclosing(model.start().reply(request)) as parts:
            async for part in parts:
                if isinstance(part, ReplyText):
                    said += part.text
                elif isinstance(part, ReplyRetry):
                    raise ModelFailure(part.reason)
    except TimeoutError:
        raise NotConnected(f"{name} gave no whole answer within {TEST_S:.0f} s; try again, or choose another") from None
    finally:
        await model.close()
    answer = SecretHider([options.api_key] if options.api_key else []).clean(clean_text(said.strip()))
    if not answer:
        raise NotConnected(f"{name} answered without a word; choose another model")
    return Connected(name, answer[:MAX_SHOWN_CHARS], round((time.monotonic() - began) * 1000), options.base_url)


def _keep(wish: Wish, connected: Connected, home: Path) -> None:
    """Keep the key as `dragoman login` does, then the choice; raises KeysUnusable and PreferencesUnusable."""
    if key := wish.api_key.strip():
        KeyStore(home).keep(connected.base_url or login_name(wish.provider), key)
    PreferenceFile(home).choose_model(ChosenModel(connected.model, connected.base_url))
