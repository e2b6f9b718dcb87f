"""`anthropic:…`, `openai:…`, `google:…`, `ollama:…` and the like: a provider's model, over the model library.

The library is imported in a thread when the first conversation starts, which is after `initialize` was answered; the
first reply waits for it. A reply that fails for a passing reason is asked for again, as `RetryPolicy` says:
`ReplyRetry` tells the person, and voids the parts of the reply before.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.assistant.models.model import ModelRequest, Part, ReplyRetry
from dragoman.assistant.models.providers import (
    DEFAULT_CONTEXT_SIZE,
    LOCAL_CONTEXT_SIZE,
    THOUGHT_LEVELS,
    ModelName,
    ProviderOptions,
    RetryPolicy,
    check_installed,
    how_to_give_key,
    how_to_install,
    key_from_environment,
    leads_elsewhere,
    login_name,
    parse_name,
    thought_levels_by_name,
)
from dragoman.errors import MissingKey, ModelFailure
from dragoman.loading import load_in_background

if TYPE_CHECKING:
    from dragoman.assistant.keys import KeyStore
    from dragoman.assistant.models.provider_connection import ProviderConnection, RetryAdvice


def provider_model(name: str, options: ProviderOptions | None = None) -> "ProviderModel":
    """Return the named model; raises UnknownModel, and ModelFailure when its library is not installed."""
    parsed = parse_name(name)
    options = options or ProviderOptions()
    if options.thought_level is not None and options.thought_level not in THOUGHT_LEVELS:
        raise ModelFailure(
            f"there is no thought level {options.thought_level!r}; expected one of {', '.join(THOUGHT_LEVELS)}"
        )
    check_installed(parsed)
    return ProviderModel(parsed, options)


class ProviderModel:
    """A provider's model; its kinds of content and the size of its context are guesses until its library is there."""

    summarises = True

    def __init__(self, name: ModelName, options: ProviderOptions) -> None:
        self.name = str(name)
        self.context_size = options.context_size or _context_size(name, options)
        self.takes = name.provider.takes
        self.thought_levels: Sequence[str] = thought_levels_by_name(name)
        self._name = name
        self._options = options
        self._keys: KeyStore | None = None
        self._key_in_use: str | None = None
        self._loading: Future[ProviderConnection] | None = None
        self._outdated: list[Future[ProviderConnection]] = []

    def __repr__(self) -> str:
        return f"ProviderModel({self.name!r})"

    def start(self) -> "ProviderConversation":
        """Begin a conversation; the library is imported from here on, in the background, unless the key is missing."""
        with suppress(MissingKey):
            self._load()
        return ProviderConversation(self)

    def use_keys(self, keys: "KeyStore") -> None:
        """Take the key from there when neither the options nor the environment have one."""
        self._keys = keys

    async def link(self) -> "ProviderConnection":
        """Return the way to the model when it is there; raises MissingKey, and ModelFailure when it cannot be had."""
        return await asyncio.wrap_future(self._load())

    async def close(self) -> None:
        """Close the connections that are kept for the next request."""
        links, self._loading, self._outdated = [*self._outdated, self._loading], None, []
        for loading in links:
            if loading is not None and loading.done() and loading.exception() is None:
                await loading.result().close()

    @property
    def retry(self) -> RetryPolicy:
        """How patiently it is asked."""
        return self._options.retry

    def _load(self) -> "Future[ProviderConnection]":
        """Return the link for the key as it is now: a login or logout elsewhere may have changed it."""
        key = self._key()
        if self._loading is not None and key != self._key_in_use:
            self._outdated.append(self._loading)  # another session may be reading from it
            self._loading = None
        if self._loading is None:
            self._key_in_use = key
            self._loading = load_in_background(lambda: self._make_link(key))
        return self._loading

    def _make_link(self, key: str | None) -> "ProviderConnection":
        link = _link(self._name, self._options, key)
        self.takes = link.takes
        self.thought_levels = link.thought_levels
        if self._options.context_size is None and link.context_size is not None:
            self.context_size = link.context_size
        return link

    def _key(self) -> str | None:
        """Return the key to send, if one is needed; raises MissingKey.

        One from the environment, or one that is kept for the provider, is meant for the provider itself, not for
        wherever base_url leads: that gets only the key that is kept for this very address.
        """
        if self._options.api_key is not None:
            return self._options.api_key
        if self._options.base_url is not None:
            return self._kept_key(self._options.base_url)
        provider = self._name.provider
        key = key_from_environment(provider)
        if key is None and provider.needs_key:
            key = None if leads_elsewhere(provider) else self._kept_key(login_name(self._name.kind))
            if key is None:
                raise _missing_key(self._name)
        return key

    def _kept_key(self, name: str) -> str | None:
        from dragoman.assistant.keys import KeysUnusable

        if self._keys is None:
            return None
        try:
            return self._keys.find(name)
        except KeysUnusable as error:
            raise MissingKey(f"{self._name.provider.title} needs a key for {self._name}", str(error)) from None


class ProviderConversation:
    """A provider's model in one session; all that was said comes with each request."""

    def __init__(self, model: ProviderModel) -> None:
        self._model = model

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Part]:
        """Stream the reply; raises ModelFailure, among them MissingKey and ContextOverflow."""
        link = await self._model.link()
        patience = RetryBudget(self._model.retry)
        while True:
            reader = link.read(request)
            try:
                async with link.ask(request) as stream:
                    async for event in stream:
                        for part in reader.take(event):
                            yield part
                    response = stream.get()
                    for part in reader.finish(response, ended=link.has_ended(response)):
                        yield part
            except Exception as error:  # noqa: BLE001 -- the edge to a foreign library, translated once and here
                trouble = link.explainer.explain(error)
            else:
                return
            # Raised out here, the error has no foreign one behind it, with requests and headers in its frames.
            if isinstance(trouble, ModelFailure):
                raise trouble
            retry = patience.next_try(trouble)
            yield retry
            await asyncio.sleep(retry.delay_s)


class RetryBudget:
    """The tries and the waiting time that are left for one reply."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._tries = 1
        self._waited_s = 0.0

    def next_try(self, again: "RetryAdvice") -> ReplyRetry:
        """Return when to ask again; raises ModelFailure when it is time to give up."""
        policy = self._policy
        if self._tries >= policy.max_tries:
            raise ModelFailure(f"{again.reason}; gave up after {self._tries} tries, try again later")
        delay_s = self._delay_s() if again.after_s is None else again.after_s
        if self._waited_s + delay_s > policy.max_wait_s:
            raise ModelFailure(f"{again.reason}; it asks to wait for {delay_s:.0f} s, try again then")
        self._tries += 1
        self._waited_s += delay_s
        return ReplyRetry(again.reason, delay_s)

    def _delay_s(self) -> float:
        delay_s = min(self._policy.first_delay_s * 2 ** (self._tries - 1), self._policy.max_delay_s)
        return delay_s * random.uniform(0.5, 1.0)  # noqa: S311 -- so that many agents do not ask in step


def _context_size(name: ModelName, options: ProviderOptions) -> int:
    local = options.base_url is not None or name.provider.base_url is not None
    return LOCAL_CONTEXT_SIZE if local else DEFAULT_CONTEXT_SIZE


def _missing_key(name: ModelName) -> MissingKey:
    return MissingKey(f"{name.provider.title} needs a key for {name}", how_to_give_key(name.kind))


def _link(name: ModelName, options: ProviderOptions, key: str | None) -> "ProviderConnection":
    from pydantic_ai.exceptions import UserError

    from dragoman.assistant.models.provider_connection import ProviderConnection

    try:
        return ProviderConnection(name, options, key)
    except ImportError as error:
        raise ModelFailure(
            f"{name} cannot be used, for its library is not whole ({error}); {how_to_install(name)}"
        ) from None
    except UserError as error:
        raise ModelFailure(f"{name} cannot be used: {error}") from None
