"""The way to one model: what the library needs for it, made once and used for every request.

This module and those it imports pull in the model library; nothing may import it at the top but they themselves.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

from httpx2 import AsyncClient, Response
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from dragoman.agent.models import model
from dragoman.agent.models.message import AssistantMessage
from dragoman.agent.models.provider_errors import Explainer
from dragoman.agent.models.provider_messages import Recipient, to_library
from dragoman.agent.models.provider_names import THOUGHT_LEVELS, ModelName, leads_elsewhere
from dragoman.agent.models.provider_options import ProviderOptions
from dragoman.agent.models.provider_reply import ReplyReader
from dragoman.errors import ModelFailure

NO_KEY = "none"
"""What is sent for a key to an address of one's own that was given none: the libraries insist on one."""

_TALKATIVE = ("anthropic", "openai", "groq", "google_genai", "httpx", "httpx2", "httpcore", "httpcore2")
"""Loggers that write whole requests at DEBUG: prompts, and headers that may be keys."""

for _name in _TALKATIVE:
    logging.getLogger(_name).setLevel(logging.WARNING)


class Link:
    """A model of the library, with the HTTP client that is its own; `close` closes it."""

    def __init__(self, name: ModelName, options: ProviderOptions, key: str | None) -> None:
        self._options = options
        self._client = _make_client(name, options.silence_s)
        self._replies: dict[asyncio.Task[Any] | None, list[Response]] = {}
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

    def read(self, request: model.ModelRequest) -> ReplyReader:
        """Return a reader for the reply to this request."""
        messages = (message for message in request.messages if isinstance(message, AssistantMessage))
        return ReplyReader(frozenset(use.id for message in messages for use in message.tool_uses))

    @asynccontextmanager
    async def ask(self, request: model.ModelRequest) -> AsyncGenerator[StreamedResponse]:
        """Send a request; leaving the context closes its connection unless the reply was read to its end."""
        if not self._entered:
            self._entered = True
            await self._model.__aenter__()
        try:
            async with self._open(request) as stream:
                yield stream
        finally:
            for reply in self._replies.pop(asyncio.current_task(), []):
                await reply.aclose()

    async def close(self) -> None:
        """Close the HTTP client with all its connections."""
        if self._entered:
            self._entered = False
            await self._model.__aexit__(None, None, None)
        if self._client is not None:
            await self._client.aclose()

    async def _note(self, reply: Response) -> None:
        self._replies.setdefault(asyncio.current_task(), []).append(reply)

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


def _make_client(name: ModelName, silence_s: float) -> AsyncClient | None:
    """Google's library leaves a reply that is not read on to the garbage collector: its client is ours, to hang up."""
    return AsyncClient(timeout=silence_s) if name.kind == "google" else None


def _make_model(name: ModelName, options: ProviderOptions, key: str | None, client: AsyncClient | None) -> Model:
    base_url = options.base_url or (None if leads_elsewhere(name.provider) else name.provider.base_url)
    if options.base_url is not None and name.provider.openai_like and name.kind != "ollama":
        return _make_compatible(name, options.base_url, key)
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


def _make_compatible(name: ModelName, base_url: str, key: str | None) -> Model:
    """An address of one's own speaks OpenAI's format, but is not OpenAI: it gets neither its key nor its prices."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider(f"{name.kind}-compatible", base_url=base_url, api_key=key or NO_KEY)
    model_class = OpenAIResponsesModel if name.kind == "openai-responses" else OpenAIChatModel
    return model_class(name.model, provider=provider)


def _is_openai(library_model: Model) -> bool:
    return library_model.system == "openai"


def _thought_levels(profile: dict[str, Any]) -> tuple[str, ...]:
    if profile.get("thinking_always_enabled"):
        return THOUGHT_LEVELS[1:]
    return THOUGHT_LEVELS if profile.get("supports_thinking") else ()
