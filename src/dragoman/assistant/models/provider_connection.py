"""The connection to one model of a provider: the library's objects, created once and used for every request.

This module and its imports load the model library, so no other module may import them at the top. Only `Explainer`
translates the library's exceptions into our own, and decides whether to retry.
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
from dragoman.assistant.models.provider_messages import IncompleteReplyError, ProviderReplyReader, Recipient, to_library
from dragoman.assistant.models.providers import (
    THOUGHT_LEVELS,
    ModelName,
    ProviderOptions,
    address_variable,
    key_instructions,
    shown_url,
)
from dragoman.errors import ContextOverflowError, MissingKeyError, ModelError
from dragoman.library_logs import unlogged
from dragoman.text import one_line
from dragoman.text.secret import SecretHider

NO_KEY = "none"
"""The key for a base_url without a key, because the libraries require one."""

CONNECT_S = 5.0
"""Connect timeout. An available provider answers in a fraction of it."""


class ProviderConnection:
    """A model of the library with its own HTTP client. `close` closes it."""

    def __init__(self, name: ModelName, options: ProviderOptions, key: str | None) -> None:
        self._options = options
        self._client = _make_client(name, options.silence_s)
        self._replies: dict[asyncio.Task[Any] | None, list[tuple[Response, _Body]]] = {}
        if self._client is not None:
            self._client.event_hooks["response"].append(self._keep_body)
        self._model = _make_model(name, options, key, self._client)
        self._entered = False
        profile = self._model.profile
        content_types = frozenset(
            kind for kind in name.provider.content_types if profile.get(_FLAGS[kind], True) and self._can_send(kind)
        )
        self._recipient = Recipient(self._model.system, content_types)
        self.content_types = content_types
        self.context_size = profile.get("context_window")
        self.thought_levels = _thought_levels(cast("dict[str, Any]", profile))
        self.explainer = Explainer(name, options.base_url, tuple(filter(None, (key, *options.headers.values()))))

    def read(self, request: model.ReplyRequest) -> ProviderReplyReader:
        """Return a reader for the reply to this request."""
        messages = (message for message in request.messages if isinstance(message, AssistantMessage))
        return ProviderReplyReader(frozenset(use.id for message in messages for use in message.tool_uses))

    @asynccontextmanager
    async def ask(self, request: model.ReplyRequest) -> AsyncGenerator[StreamedResponse]:
        """Send a request. Leaving the context closes its connection unless the reply was read completely."""
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
        """Return whether the provider said that this reply is complete. `ask` must still be open.

        The library reports `stop` for a chat completion without a reason, because some servers never send one. Those
        servers send [DONE]. A stream with neither was cut off.
        """
        if "finish_reason" in (response.provider_details or {}) or response.finish_reason == "content_filter":
            return True
        if not _speaks_chat(self._model):
            return response.finish_reason is not None
        return any(body.is_done for _, body in self._replies.get(asyncio.current_task(), []))

    async def close(self) -> None:
        """Close the HTTP client and its connections."""
        if self._entered:
            self._entered = False
            await self._model.__aexit__(None, None, None)
        if self._client is not None:
            await self._client.aclose()

    async def _keep_body(self, reply: Response) -> None:
        reply.stream = body = _Body(cast("AsyncByteStream", reply.stream))
        self._replies.setdefault(asyncio.current_task(), []).append((reply, body))

    def _open(self, request: model.ReplyRequest) -> AbstractAsyncContextManager[StreamedResponse]:
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

    def _settings(self, request: model.ReplyRequest) -> ModelSettings:
        options = self._options
        level = request.thought_level or options.thought_level
        settings: dict[str, Any] = {
            "max_tokens": request.max_output_tokens or options.max_output_tokens,
            "temperature": options.temperature,
            "thinking": _THINKING.get(level, level) if level else None,
            "timeout": options.silence_s,
            "extra_headers": options.headers or None,
            "max_retries": 0,  # our retries are shown to the user, the library's are not
            "cache": True,  # every request of a turn has the same beginning
            "openai_store": False if _is_openai(self._model) else None,
        }
        return cast("ModelSettings", {name: value for name, value in settings.items() if value is not None})

    def _can_send(self, kind: str) -> bool:
        """Return whether the model's wire format supports the content type.

        OpenAI's own formats support audio for a few models only, and the library does not say which.
        """
        return kind != "audio" or "openai" not in type(self._model).__module__


_FLAGS = {
    "image": "supports_image_input",
    "audio": "supports_audio_file_input",
    "document": "supports_document_input",
}
_THINKING: dict[str, Any] = {"off": False}


class _Body(AsyncByteStream):
    """The body of a reply, which remembers its last bytes."""

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
        """Whether the body ended with [DONE] of OpenAI's chat format. JSON cannot contain it at the start of a line."""
        return self._DONE.search(self._last) is not None


def _make_client(name: ModelName, silence_s: float) -> AsyncClient | None:
    """Return our own HTTP client if the library's does not suffice.

    Google's library leaves an unread reply to the garbage collector. OpenAI's does not say whether [DONE] was received,
    so we read it from the body, which must not be compressed.
    """
    if name.kind != "google" and name.provider.package != "openai":
        return None
    client = create_async_httpx2_client(timeout=Timeout(silence_s, connect=CONNECT_S))
    client.headers["accept-encoding"] = "identity"
    return client


def _speaks_chat(library_model: Model) -> bool:
    """Return whether the model uses OpenAI's chat format.

    The class is not imported, because its library may not be installed.
    """
    return any(parent.__name__ == "OpenAIChatModel" for parent in type(library_model).__mro__)


def _make_model(name: ModelName, options: ProviderOptions, key: str | None, client: AsyncClient | None) -> Model:
    base_url = options.base_url or (None if address_variable(name.provider) else name.provider.base_url)
    if options.base_url is not None and name.provider.openai_like and name.kind != "ollama":
        return _make_compatible(name, options.base_url, key, client)
    provider_class = infer_provider_class(name.kind)
    values = {
        "api_key": key or (NO_KEY if options.base_url else None),
        "base_url": base_url,
        "http_client": client,
    }
    set_values = {argument: value for argument, value in values.items() if value is not None}
    unknown = set(set_values) - set(inspect.signature(provider_class).parameters)
    if "base_url" in unknown:
        raise ModelError(f"{name.provider.title} does not support base_url; leave it out")
    arguments = {argument: value for argument, value in set_values.items() if argument not in unknown}
    provider = provider_class(**arguments)
    return infer_model(str(name), provider_factory=lambda _: provider)


def _make_compatible(name: ModelName, base_url: str, key: str | None, client: AsyncClient | None) -> Model:
    """Return a model for an address that speaks OpenAI's format but is not OpenAI.

    It gets neither OpenAI's key nor its prices.
    """
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


MAX_MESSAGE_CHARS = 300
"""Maximal characters of a provider's message that are passed on. Some send whole web pages."""

_OVERFLOW = re.compile(
    r"context.{0,20}(length|window|size|limit)|maximum.{0,20}(context|tokens)|too many (input )?tokens"
    r"|(prompt|input) is too long|input.{0,20}tokens? exceed|reduce the length",
    re.IGNORECASE,
)
"""How providers describe an overflow for which the library has no category. They agree on no code."""

_BAD_KEY = re.compile(r"API[ _]key[ _](not[ _]valid|invalid|expired)", re.IGNORECASE)
"""Google answers a wrong key with 400, like any other mistake."""

_REFUSED_STATUSES = frozenset({400, 413, 422})
_TEMPORARY_STATUSES = frozenset({408, 409, 425})

_TEMPORARY: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((library.ModelRateLimitError,), "{0} is rate limiting requests{1}"),
    ((library.ModelOverloadedError,), "{0} is overloaded{1}"),
    ((library.ModelUnavailableError, library.ModelServerError), "{0} reported a server error{1}"),
    ((library.ModelTimeoutError, library.ModelRequestTimeout, TimeoutError), "{0} sent nothing for too long"),
    ((library.ModelConnectionError, OSError), "the connection to {0} was lost"),
    ((IncompleteReplyError,), "{0} ended its answer early"),
)
"""Temporary failures, each with its message. {0} is the provider's title, {1} its own message."""


class RetryAdvice(msgspec.Struct, frozen=True):
    """A retry may work, after the delay that the provider asks for."""

    reason: str
    after_s: float | None = None


class Explainer(msgspec.Struct, frozen=True):
    """Explains a provider's failures without revealing secrets."""

    name: ModelName
    base_url: str | None
    secrets: tuple[str, ...]

    def explain(self, error: BaseException) -> ModelError | RetryAdvice:
        """Return the error to raise, or the advice to retry."""
        detail = self._message(error)
        if isinstance(error, library.ModelAPIError) and _is_overflow(error, detail):
            return ContextOverflowError(
                f"the conversation is too long for {self.name}{detail}; /compact makes it shorter"
            )
        if isinstance(error, library.ModelHTTPError) and _BAD_KEY.search(detail):
            return self.missing_key(detail)
        # The user must start a server that refuses connections. Retrying would only delay the message.
        if _has_cause(error, ConnectionRefusedError):
            correct = ", or correct base_url" if self.base_url is not None else ""
            return ModelError(f"nothing answers at {self._shown_address()}; start the server there{correct}")
        return self._explain_temporary(error, detail) or self._explain_permanent(error, detail)

    def missing_key(self, detail: str = "") -> MissingKeyError:
        """Return the error that explains where to put the key."""
        title, variables = self._title(), self.name.provider.variables
        what = f"{title} did not accept the key{detail}" if detail else f"{title} needs a key for {self.name}"
        if self.base_url is not None or not variables:
            remedy = "set the model's api_key in the agent file (it may be env://NAME)"
            if self.base_url is not None:
                remedy += f", or run `dragoman login {shown_url(self.base_url)}` in a terminal"
            return MissingKeyError(what, remedy)
        return MissingKeyError(what, key_instructions(self.name.kind))

    def _explain_temporary(self, error: BaseException, detail: str) -> RetryAdvice | None:
        after_s = error.retry_after if isinstance(error, library.ModelAPIError) else None
        if _has_cause(error, socket.gaierror):
            return RetryAdvice(f"{self._title()} cannot be reached: its host name could not be resolved", after_s)
        for kinds, reason in _TEMPORARY:
            if isinstance(error, kinds):
                return RetryAdvice(reason.format(self._title(), detail), after_s)
        if isinstance(error, library.ModelHTTPError):
            passing = error.status_code in _TEMPORARY_STATUSES
            return RetryAdvice(f"{self._title()} failed{detail}", after_s) if passing else None
        return self._explain_unreadable(error)

    def _explain_unreadable(self, error: BaseException) -> RetryAdvice | None:
        """Explain an error outside of the library's categories, which means an unreadable answer."""
        title = self._title()
        if type(error) is library.ModelAPIError:
            return RetryAdvice(f"{title} sent an unreadable answer{self._message(error)}", error.retry_after)
        if isinstance(error, library.UnexpectedModelBehavior | ValueError | AttributeError | TypeError):
            return RetryAdvice(f"{title} sent an unreadable answer")
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2", "h11"):
            return RetryAdvice(f"the connection to {title} was lost")
        return None

    def _explain_permanent(self, error: BaseException, detail: str) -> ModelError:
        title = self._title()
        match error:
            case library.ModelAuthenticationError():
                return self.missing_key(detail or " ")
            case library.ModelQuotaExceededError():
                return ModelError(
                    f"the account at {title} has no credit or quota left{detail}; check your account there"
                )
            case library.ModelNotFoundError():
                guess = getattr(error, "suggested_model_id", None)
                hint = f"did you mean {guess}?" if guess else "check the name of the model, and base_url if one is set"
                where = "" if self.base_url is not None else f" at {self._shown_address()}"
                return ModelError(f"{title} has no model {self.name.model!r}{where}{detail}; {hint}")
            case library.ModelAPIError():
                return ModelError(f"{title} refused the request{detail}")
            case _:
                return ModelError(f"{title} cannot be used{detail}")

    def _message(self, error: BaseException) -> str:
        body = error.body if isinstance(error, library.ModelAPIError) else None
        text = _error_text(body) or ("" if isinstance(error, library.ModelHTTPError) else str(error))
        text = one_line(SecretHider(self.secrets).clean(text), MAX_MESSAGE_CHARS)
        if not text:
            return f" (status {error.status_code})" if isinstance(error, library.ModelHTTPError) else ""
        return f": {text}"

    def _title(self) -> str:
        """Return the name of the endpoint. With a base_url it is not the provider."""
        return self.name.provider.title if self.base_url is None else f"the server at {shown_url(self.base_url)}"

    def _shown_address(self) -> str:
        own = self.name.provider.base_url
        if self.base_url is None and (own is None or address_variable(self.name.provider)):
            return "its own address"
        return shown_url(self.base_url or own or "")


def _error_text(body: object) -> str:
    """Return the message in an error's body, in any of the usual formats."""
    if isinstance(body, str):
        return body
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, Any]", body)
    for key in ("error", "message", "detail"):
        if text := _error_text(fields.get(key)):
            return text
    return ""


def _is_overflow(error: library.ModelAPIError, detail: str) -> bool:
    if isinstance(error, library.ModelContextWindowExceededError):
        return True
    status = getattr(error, "status_code", None)
    return status in _REFUSED_STATUSES and _OVERFLOW.search(detail) is not None


def _has_cause(error: BaseException, kind: type[OSError]) -> bool:
    """Return whether a system error caused this one. The library reports all of them as a lost connection."""
    cause: BaseException | None = error
    for _ in range(8):
        if cause is None or isinstance(cause, kind):
            break
        cause = cause.__cause__ or cause.__context__
    return isinstance(cause, kind)
