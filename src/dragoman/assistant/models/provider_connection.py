"""The connection to one model of a provider: the library's objects for it, made once and used for every request.

This module and those it imports pull in the model library; nothing may import it at the top but they themselves.
`Explainer` is the one place where the library's exceptions become ours, with the decision whether to ask again.
"""

import asyncio
import inspect
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import msgspec
from httpx2 import AsyncByteStream, AsyncClient, Response, Timeout
from pydantic_ai import exceptions as library
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import (
    Model,
    ModelRequestParameters,
    StreamedResponse,
    create_async_httpx2_client,
    infer_model,
)
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from dragoman.assistant.models import model
from dragoman.assistant.models.message import AssistantMessage
from dragoman.assistant.models.provider_messages import BrokenOff, ProviderReplyReader, Recipient, to_library
from dragoman.assistant.models.providers import (
    THOUGHT_LEVELS,
    ModelName,
    ProviderOptions,
    how_to_give_key,
    leads_elsewhere,
    shown_url,
)
from dragoman.errors import ContextOverflow, MissingKey, ModelFailure
from dragoman.library_logs import unlogged
from dragoman.text import one_line
from dragoman.text.secret import SecretHider

NO_KEY = "none"
"""The key that is sent to a base_url without a key: the libraries insist on one."""

CONNECT_S = 5.0
"""How long a connection may take to be made; a provider that is there answers in a fraction of it."""


class ProviderConnection:
    """A model of the library, with the HTTP client that is its own; `close` closes it."""

    def __init__(self, name: ModelName, options: ProviderOptions, key: str | None) -> None:
        self._options = options
        self._client = _make_client(name, options.silence_s)
        self._replies: dict[asyncio.Task[Any] | None, list[tuple[Response, _Body]]] = {}
        if self._client is not None:
            self._client.event_hooks["response"].append(self._note)
        self._model = _make_model(name, options, key, self._client)
        self._entered = False
        profile = self._model.profile
        takes = frozenset(
            kind for kind in name.provider.takes if profile.get(_FLAGS[kind], True) and self._can_send(kind)
        )
        self._recipient = Recipient(self._model.system, takes)
        self.takes = takes
        self.context_size = profile.get("context_window")
        self.thought_levels = _thought_levels(cast("dict[str, Any]", profile))
        self.explainer = Explainer(name, options.base_url, tuple(filter(None, (key, *options.headers.values()))))

    def read(self, request: model.ModelRequest) -> ProviderReplyReader:
        """Return a reader for the reply to this request."""
        messages = (message for message in request.messages if isinstance(message, AssistantMessage))
        return ProviderReplyReader(frozenset(use.id for message in messages for use in message.tool_uses))

    @asynccontextmanager
    async def ask(self, request: model.ModelRequest) -> AsyncGenerator[StreamedResponse]:
        """Send a request; leaving the context closes its connection unless the reply was read to its end."""
        if not self._entered:
            self._entered = True
            await self._model.__aenter__()
        try:
            with unlogged():
                async with self._open(request) as stream:
                    yield stream
        finally:
            for reply, _ in self._replies.pop(asyncio.current_task(), []):
                await reply.aclose()

    def has_ended(self, response: ModelResponse) -> bool:
        """Whether the provider said that this reply, which `ask` is still open for, is complete.

        The library says `stop` for a chat completion that gave no reason, because some servers never give one. Those
        send [DONE]; a stream with neither was cut off on its way.
        """
        if "finish_reason" in (response.provider_details or {}) or response.finish_reason == "content_filter":
            return True
        if not _speaks_chat(self._model):
            return response.finish_reason is not None
        return any(body.is_done for _, body in self._replies.get(asyncio.current_task(), []))

    async def close(self) -> None:
        """Close the HTTP client with all its connections."""
        if self._entered:
            self._entered = False
            await self._model.__aexit__(None, None, None)
        if self._client is not None:
            await self._client.aclose()

    async def _note(self, reply: Response) -> None:
        reply.stream = body = _Body(cast("AsyncByteStream", reply.stream))
        self._replies.setdefault(asyncio.current_task(), []).append((reply, body))

    def _open(self, request: model.ModelRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        tools = [
            ToolDefinition(
                name=tool.name, parameters_json_schema=tool.parameters, description=tool.description, strict=False
            )
            for tool in request.tools
        ]
        return model_request_stream(
            self._model,
            to_library(request, self._recipient),
            model_settings=self._settings(request),
            model_request_parameters=ModelRequestParameters(function_tools=tools, allow_text_output=True),
            instrument=False,
        )

    def _settings(self, request: model.ModelRequest) -> ModelSettings:
        options = self._options
        level = request.thought_level or options.thought_level
        settings: dict[str, Any] = {
            "max_tokens": request.max_output_tokens or options.max_output_tokens,
            "temperature": options.temperature,
            "thinking": _THINKING.get(level, level) if level else None,
            "timeout": options.silence_s,
            "extra_headers": options.headers or None,
            "max_retries": 0,  # ours are shown to the person, the library's are not
            "cache": True,  # a turn sends the same beginning again and again
            "openai_store": False if _is_openai(self._model) else None,
        }
        return cast("ModelSettings", {name: value for name, value in settings.items() if value is not None})

    def _can_send(self, kind: str) -> bool:
        """OpenAI's own formats have audio for a few models only, and none of them is told by the library."""
        return kind != "audio" or "openai" not in type(self._model).__module__


_FLAGS = {
    "image": "supports_image_input",
    "audio": "supports_audio_file_input",
    "document": "supports_document_input",
}
_THINKING: dict[str, Any] = {"off": False}


class _Body(AsyncByteStream):
    """The body of a reply, which knows its last bytes."""

    _DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
    _KEPT = 64

    def __init__(self, stream: AsyncByteStream) -> None:
        self._stream = stream
        self._last = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._last = (self._last + piece)[-self._KEPT :]
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    @property
    def is_done(self) -> bool:
        """Whether it ended with the mark of OpenAI's chat format; no JSON can hold it, as it begins a line."""
        return self._DONE.search(self._last) is not None


def _make_client(name: ModelName, silence_s: float) -> AsyncClient | None:
    """Return a client of our own where the library's would not do.

    Google's library leaves a reply that is not read on to the garbage collector, and OpenAI's does not tell whether
    [DONE] came: that is read from the body, which therefore must not be compressed.
    """
    if name.kind != "google" and name.provider.package != "openai":
        return None
    client = create_async_httpx2_client(timeout=Timeout(silence_s, connect=CONNECT_S))
    client.headers["accept-encoding"] = "identity"
    return client


def _speaks_chat(library_model: Model) -> bool:
    """Whether it speaks OpenAI's chat format; the class is not imported, as its library need not be installed."""
    return any(parent.__name__ == "OpenAIChatModel" for parent in type(library_model).__mro__)


def _make_model(name: ModelName, options: ProviderOptions, key: str | None, client: AsyncClient | None) -> Model:
    base_url = options.base_url or (None if leads_elsewhere(name.provider) else name.provider.base_url)
    if options.base_url is not None and name.provider.openai_like and name.kind != "ollama":
        return _make_compatible(name, options.base_url, key, client)
    provider_class = infer_provider_class(name.kind)
    wanted = {
        "api_key": key or (NO_KEY if options.base_url else None),
        "base_url": base_url,
        "http_client": client,
    }
    given = {argument: value for argument, value in wanted.items() if value is not None}
    unknown = set(given) - set(inspect.signature(provider_class).parameters)
    if "base_url" in unknown:
        raise ModelFailure(f"{name.provider.title} cannot be given another address; leave base_url out")
    arguments = {argument: value for argument, value in given.items() if argument not in unknown}
    provider = provider_class(**arguments)
    return infer_model(str(name), provider_factory=lambda _: provider)


def _make_compatible(name: ModelName, base_url: str, key: str | None, client: AsyncClient | None) -> Model:
    """An address of one's own speaks OpenAI's format, but is not OpenAI: it gets neither its key nor its prices."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider(
        f"{name.kind}-compatible", base_url=base_url, api_key=key or NO_KEY, http_client=client
    )
    model_class = OpenAIResponsesModel if name.kind == "openai-responses" else OpenAIChatModel
    return model_class(name.model, provider=provider)


def _is_openai(library_model: Model) -> bool:
    return library_model.system == "openai"


def _thought_levels(profile: dict[str, Any]) -> tuple[str, ...]:
    if profile.get("thinking_always_enabled"):
        return THOUGHT_LEVELS[1:]
    return THOUGHT_LEVELS if profile.get("supports_thinking") else ()


MAX_SAID = 300
"""Characters of a provider's own words that are passed on: some send whole web pages."""

_OVERFLOW = re.compile(
    r"context.{0,20}(length|window|size|limit)|maximum.{0,20}(context|tokens)|too many (input )?tokens"
    r"|(prompt|input) is too long|input.{0,20}tokens? exceed|reduce the length",
    re.IGNORECASE,
)
"""How providers word an overflow that the library has no category for; they agree on no code."""

_BAD_KEY = re.compile(r"API[ _]key[ _](not[ _]valid|invalid|expired)", re.IGNORECASE)
"""Google answers a wrong key with 400, like any other mistake."""

_REFUSED_STATUSES = frozenset({400, 413, 422})
_PASSING_STATUSES = frozenset({408, 409, 425})

_PASSING: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((library.ModelRateLimitError,), "{0} limits the rate of requests{1}"),
    ((library.ModelOverloadedError,), "{0} is overloaded{1}"),
    ((library.ModelUnavailableError, library.ModelServerError), "{0} has a problem{1}"),
    ((library.ModelTimeoutError, library.ModelRequestTimeout, TimeoutError), "{0} sent nothing for too long"),
    ((library.ModelConnectionError, OSError), "the connection to {0} was lost"),
    ((BrokenOff,), "{0} broke off its answer"),
)
"""Statuses that may be over soon, and the words for each: the provider's title, then its own words."""


class RetryAdvice(msgspec.Struct, frozen=True):
    """It may work if asked again, after as long as the provider asks for."""

    reason: str
    after_s: float | None = None


class Explainer(msgspec.Struct, frozen=True):
    """Explains a provider's failures, without secrets."""

    name: ModelName
    base_url: str | None
    secrets: tuple[str, ...]

    def explain(self, error: BaseException) -> ModelFailure | RetryAdvice:
        """Return the error to raise, or the advice to ask again."""
        said = self._said(error)
        if isinstance(error, library.ModelAPIError) and _is_overflow(error, said):
            return ContextOverflow(f"the conversation is too long for {self.name}{said}; /compact makes it shorter")
        if isinstance(error, library.ModelHTTPError) and _BAD_KEY.search(said):
            return self.missing_key(said)
        # A refused connection needs the person to start the server: asking again would only make them wait.
        if _has_cause(error, ConnectionRefusedError):
            correct = ", or correct base_url" if self.base_url is not None else ""
            return ModelFailure(f"nothing answers at {self._where()}; start the server there{correct}")
        return self._passing(error, said) or self._lasting(error, said)

    def missing_key(self, said: str = "") -> MissingKey:
        """Return the error that says where the key belongs."""
        title, variables = self._title(), self.name.provider.variables
        what = f"{title} did not accept the key{said}" if said else f"{title} needs a key for {self.name}"
        if self.base_url is not None or not variables:
            remedy = "set the model's api_key in the agent file (it may be env://NAME)"
            if self.base_url is not None:
                remedy += f", or run `dragoman login {shown_url(self.base_url)}` in a terminal"
            return MissingKey(what, remedy)
        return MissingKey(what, how_to_give_key(self.name.kind))

    def _passing(self, error: BaseException, said: str) -> RetryAdvice | None:
        after_s = error.retry_after if isinstance(error, library.ModelAPIError) else None
        if _has_cause(error, socket.gaierror):
            return RetryAdvice(f"{self._title()} cannot be reached: the name of its host is not known here", after_s)
        for kinds, words in _PASSING:
            if isinstance(error, kinds):
                return RetryAdvice(words.format(self._title(), said), after_s)
        if isinstance(error, library.ModelHTTPError):
            passing = error.status_code in _PASSING_STATUSES
            return RetryAdvice(f"{self._title()} has a problem{said}", after_s) if passing else None
        return self._garbled(error)

    def _garbled(self, error: BaseException) -> RetryAdvice | None:
        """Explain an error outside of the library's own categories: it did not understand the answer."""
        title = self._title()
        if type(error) is library.ModelAPIError:
            return RetryAdvice(f"{title} sent something unreadable{self._said(error)}", error.retry_after)
        if isinstance(error, library.UnexpectedModelBehavior | ValueError | AttributeError | TypeError):
            return RetryAdvice(f"{title} sent something unreadable")
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2", "h11"):
            return RetryAdvice(f"the connection to {title} was lost")
        return None

    def _lasting(self, error: BaseException, said: str) -> ModelFailure:
        title = self._title()
        match error:
            case library.ModelAuthenticationError():
                return self.missing_key(said or " ")
            case library.ModelQuotaExceededError():
                return ModelFailure(f"the account at {title} has no credit or quota left{said}; see to it there")
            case library.ModelNotFoundError():
                guess = getattr(error, "suggested_model_id", None)
                hint = f"did you mean {guess}?" if guess else "check the name of the model, and base_url if one is set"
                where = "" if self.base_url is not None else f" at {self._where()}"
                return ModelFailure(f"{title} has no model {self.name.model!r}{where}{said}; {hint}")
            case library.ModelAPIError():
                return ModelFailure(f"{title} refused the request{said}")
            case _:
                return ModelFailure(f"{title} cannot be asked{said}")

    def _said(self, error: BaseException) -> str:
        body = error.body if isinstance(error, library.ModelAPIError) else None
        words = _words(body) or ("" if isinstance(error, library.ModelHTTPError) else str(error))
        words = one_line(SecretHider(self.secrets).clean(words), MAX_SAID)
        if not words:
            return f" (status {error.status_code})" if isinstance(error, library.ModelHTTPError) else ""
        return f": {words}"

    def _title(self) -> str:
        """Name the endpoint that was asked: with a base_url it is not the provider."""
        return self.name.provider.title if self.base_url is None else f"the server at {shown_url(self.base_url)}"

    def _where(self) -> str:
        own = self.name.provider.base_url
        if self.base_url is None and (own is None or leads_elsewhere(self.name.provider)):
            return "its own address"
        return shown_url(self.base_url or own or "")


def _words(body: object) -> str:
    """Return the message in an error's body, in any of the usual shapes."""
    if isinstance(body, str):
        return body
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, Any]", body)
    for key in ("error", "message", "detail"):
        if words := _words(fields.get(key)):
            return words
    return ""


def _is_overflow(error: library.ModelAPIError, said: str) -> bool:
    if isinstance(error, library.ModelContextWindowExceededError):
        return True
    status = getattr(error, "status_code", None)
    return status in _REFUSED_STATUSES and _OVERFLOW.search(said) is not None


def _has_cause(error: BaseException, kind: type[OSError]) -> bool:
    """Whether an error goes back to one of the system's: the library tells all of them as a lost connection."""
    cause: BaseException | None = error
    for _ in range(8):
        if cause is None or isinstance(cause, kind):
            break
        cause = cause.__cause__ or cause.__context__
    return isinstance(cause, kind)
