"""Models of providers such as `anthropic:…`, `openai:…`, `google:…` and `ollama:…`, through the model library.

A thread imports the library when the first conversation starts, after `initialize` was answered. The first reply waits
for it. A reply that fails temporarily is requested again as `RetryPolicy` says. `ReplyRetry` then informs the user and
voids the earlier parts of the reply.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.assistant.models.model import Part, ReplyRequest, ReplyRetry
from dragoman.assistant.models.providers import (
    DEFAULT_CONTEXT_SIZE,
    LOCAL_CONTEXT_SIZE,
    THOUGHT_LEVELS,
    ModelName,
    ProviderOptions,
    RetryPolicy,
    address_variable,
    check_installed,
    how_to_install,
    key_from_environment,
    key_instructions,
    login_name,
    parse_name,
    thought_levels_by_name,
)
from dragoman.backoff import Backoff
from dragoman.errors import MissingKeyError, ModelError
from dragoman.loading import load_in_background

if TYPE_CHECKING:
    from dragoman.assistant.keys import KeyStore
    from dragoman.assistant.models.provider_connection import ProviderConnection, RetryAdvice


def provider_model(name: str, options: ProviderOptions | None = None) -> "ProviderModel":
    """Return the named model. Raises UnknownModelError, or ModelError if its library is not installed."""
    parsed = parse_name(name)
    options = options or ProviderOptions()
    if options.thought_level is not None and options.thought_level not in THOUGHT_LEVELS:
        raise ModelError(
            f"unknown thought level {options.thought_level!r}; expected one of {', '.join(THOUGHT_LEVELS)}"
        )
    check_installed(parsed)
    return ProviderModel(parsed, options)


class ProviderModel:
    """A provider's model. Its content types and context size are estimates until its library is loaded."""

    summarises = True

    def __init__(self, name: ModelName, options: ProviderOptions) -> None:
        self.name = str(name)
        self.context_size = options.context_size or _context_size(name, options)
        self.content_types = name.provider.content_types
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
        """Start a conversation. From now on, a thread imports the library, unless the key is missing."""
        with suppress(MissingKeyError):
            self._load()
        return ProviderConversation(self)

    def use_keys(self, keys: "KeyStore") -> None:
        """Use these keys if neither the options nor the environment have one."""
        self._keys = keys

    async def link(self) -> "ProviderConnection":
        """Return the connection to the model once it is loaded.

        Raises MissingKeyError, or ModelError if the model cannot be used.
        """
        return await asyncio.wrap_future(self._load())

    async def close(self) -> None:
        """Close the idle connections."""
        links, self._loading, self._outdated = [*self._outdated, self._loading], None, []
        for loading in links:
            if loading is not None and loading.done() and loading.exception() is None:
                await loading.result().close()

    @property
    def retry(self) -> RetryPolicy:
        """How often and how long to retry."""
        return self._options.retry

    def _load(self) -> "Future[ProviderConnection]":
        """Return the connection for the current key. A login or logout in another process may have changed it."""
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
        self.content_types = link.content_types
        self.thought_levels = link.thought_levels
        if self._options.context_size is None and link.context_size is not None:
            self.context_size = link.context_size
        return link

    def _key(self) -> str | None:
        """Return the key to send, if one is needed. Raises MissingKeyError.

        A key from the environment, or one stored for the provider, is never sent to another base_url. That address gets
        only the key stored for exactly this address.
        """
        if self._options.api_key is not None:
            return self._options.api_key
        if self._options.base_url is not None:
            return self._stored_key(self._options.base_url)
        provider = self._name.provider
        key = key_from_environment(provider)
        if key is None and provider.needs_key:
            key = None if address_variable(provider) else self._stored_key(login_name(self._name.kind))
            if key is None:
                raise _missing_key(self._name)
        return key

    def _stored_key(self, name: str) -> str | None:
        from dragoman.assistant.keys import KeysFileError

        if self._keys is None:
            return None
        try:
            return self._keys.find(name)
        except KeysFileError as error:
            raise MissingKeyError(f"{self._name.provider.title} needs a key for {self._name}", str(error)) from None


class ProviderConversation:
    """A provider's model in one session. Each request contains the whole conversation."""

    def __init__(self, model: ProviderModel) -> None:
        self._model = model

    async def reply(self, request: ReplyRequest) -> AsyncGenerator[Part]:
        """Stream the reply. Raises ModelError, including MissingKeyError and ContextOverflowError."""
        link = await self._model.link()
        budget = RetryBudget(self._model.retry)
        while True:
            reader = link.read(request)
            try:
                async with link.ask(request) as stream:
                    async for event in stream:
                        for part in reader.read(event):
                            yield part
                    response = stream.get()
                    for part in reader.finish(response, ended=link.has_ended(response)):
                        yield part
            except Exception as error:  # noqa: BLE001 -- the foreign library's errors are translated here
                trouble = link.explainer.explain(error)
            else:
                return
            # Raised outside of the handler, the error has no foreign cause with requests and headers in its frames.
            if isinstance(trouble, ModelError):
                raise trouble
            retry = budget.next_try(trouble)
            yield retry
            await asyncio.sleep(retry.delay_s)


class RetryBudget:
    """The attempts and the waiting time left for one reply."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._tries = 1
        self._backoff = Backoff(policy.first_delay_s, policy.max_delay_s)
        self._waited_s = 0.0

    def next_try(self, again: "RetryAdvice") -> ReplyRetry:
        """Return the next retry. Raises ModelError if the budget is spent."""
        policy = self._policy
        if self._tries >= policy.max_tries:
            raise ModelError(f"{again.reason}; gave up after {self._tries} tries; try again later")
        pause_s = self._backoff.next_s() * random.uniform(0.5, 1.0)  # noqa: S311 -- jitter, so that agents do not retry together
        delay_s = pause_s if again.after_s is None else again.after_s
        if self._waited_s + delay_s > policy.max_wait_s:
            raise ModelError(f"{again.reason}; it asks to wait {delay_s:.0f} s; try again then")
        self._tries += 1
        self._waited_s += delay_s
        return ReplyRetry(again.reason, delay_s)


def _context_size(name: ModelName, options: ProviderOptions) -> int:
    local = options.base_url is not None or name.provider.base_url is not None
    return LOCAL_CONTEXT_SIZE if local else DEFAULT_CONTEXT_SIZE


def _missing_key(name: ModelName) -> MissingKeyError:
    return MissingKeyError(f"{name.provider.title} needs a key for {name}", key_instructions(name.kind))


def _link(name: ModelName, options: ProviderOptions, key: str | None) -> "ProviderConnection":
    from pydantic_ai.exceptions import UserError

    from dragoman.assistant.models.provider_connection import ProviderConnection

    try:
        return ProviderConnection(name, options, key)
    except ImportError as error:
        raise ModelError(
            f"{name} cannot be used, because its library is incomplete ({error}); {how_to_install(name)}"
        ) from None
    except UserError as error:
        raise ModelError(f"{name} cannot be used: {error}") from None
