"""The connection to one model of a provider: the library's objects for it, made once and used for every request.

This module and those it imports pull in the model library; nothing may import it at the top but they themselves.
"""

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

from httpx2 import AsyncByteStream, AsyncClient, Response, Timeout
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
from dragoman.assistant.models.provider_errors import Explainer
from dragoman.assistant.models.provider_messages import Recipient, to_library
from dragoman.assistant.models.provider_reply import ProviderReplyReader
from dragoman.assistant.models.providers import THOUGHT_LEVELS, ModelName, ProviderOptions, leads_elsewhere
from dragoman.errors import ModelFailure
from dragoman.library_logs import unlogged

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
