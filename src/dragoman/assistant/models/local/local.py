"""A model file in sessions: its replies, made one at a time, streamed as they come."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from dragoman.assistant.models.local.answer import LocalReplyReader, grammar
from dragoman.assistant.models.local.chat import Chat, tools_in_front
from dragoman.assistant.models.local.engine import (
    ENGINE,
    Chunk,
    EngineSetup,
    Give,
    LlamaServer,
    QueuePosition,
    ThreadStream,
    is_installed,
    missing_library,
)
from dragoman.assistant.models.local.gguf import read_head
from dragoman.assistant.models.model import ModelRequest, Part, ReplyThought
from dragoman.assistant.models.tool_index import ToolIndex
from dragoman.errors import ContextOverflow, ModelFailure

MAX_CONTEXT_SIZE = 4096
"""Tokens, where the file allows as many. One core read 6,798 of them in 143 s, with a model of only 135M."""

MAX_OUTPUT_TOKENS = 1024
"""The default length of a reply: small models may repeat themselves for ever."""

TEMPERATURE = 0.2
"""Low, since a tool's arguments are right or wrong; chosen, not measured."""

CHARACTERS_PER_TOKEN = 3.0
"""A guess on the safe side for English and code; when it is wrong the library says so, with the true count."""

MAX_TRIES = 4
"""How often the conversation is made shorter before it is called too long."""

_WAITING = "[Another session is using the local model; this one is next in line after it.]\n"


class LocalOptions(msgspec.Struct, frozen=True):
    """The options that an agent file may set."""

    temperature: float | None = None
    max_output_tokens: int | None = None
    context_size: int | None = None


def local_model(path: Path, options: LocalOptions | None = None) -> "LocalModel":
    """Return the model in a file, which is not loaded yet; raises ModelFailure when it cannot be one."""
    if not is_installed():
        raise missing_library()
    return LocalModel(path, options or LocalOptions())


class LocalModel:
    """A model file; it is loaded with the first reply, and freed when another file's turn comes or by `close`."""

    takes: frozenset[str] = frozenset()
    thought_levels: Sequence[str] = ()
    summarises = False
    """It could, but would take minutes, and not do it well; the prompts are kept word by word instead."""

    def __init__(self, path: Path, options: LocalOptions) -> None:
        self.name = f"local:{path}"
        head = read_head(path)
        self.context_size = options.context_size or min(head.context_length or MAX_CONTEXT_SIZE, MAX_CONTEXT_SIZE)
        self.options = options
        self.setup = EngineSetup(path.resolve(), self.context_size)
        self.size_bytes = head.size_bytes

    def start(self) -> "LocalConversation":
        """Begin a conversation; nothing is loaded for that."""
        return LocalConversation(self)

    async def close(self) -> None:
        """Free the memory when the running reply is done."""
        if not ENGINE.has(self.setup):
            return
        place = ENGINE.line.join()
        try:
            await asyncio.wrap_future(place.turn)
            if ENGINE.has(self.setup):
                ENGINE.free()
        finally:
            place.leave()


class LocalConversation:
    """A local model in one session; all that was said comes with each request."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._index = ToolIndex()

    async def reply(self, request: ModelRequest) -> AsyncGenerator[Part]:
        """Stream the reply; raises ModelFailure, among them ContextOverflow."""
        model = self._model
        chat = Chat(request, await tools_in_front(request, self._index))
        place = ENGINE.line.join()
        working = False
        try:
            if not place.turn.done():
                yield ReplyThought(_WAITING)
            await asyncio.wrap_future(place.turn)
            if not ENGINE.has(model.setup):
                yield ReplyThought(f"[Loading {model.setup.path.name}, {model.size_bytes / 1e9:.1f} GB.]\n")
            stream = ThreadStream(_Answering(model, chat, request.max_output_tokens, place), "dragoman-local-model")
            ENGINE.work(stream)
            working = True
        finally:
            if not working:  # else its thread leaves when it is done with the model, which may be later than we are
                place.leave()
        reader = LocalReplyReader(constrained=bool(request.tools))
        async with aclosing(stream.items()) as chunks:
            async for chunk in chunks:
                for part in reader.take(chunk):
                    yield part
        for part in reader.finish():
            yield part


class _Answering:
    """The work of one reply, in its thread: load the model, ask it, ask with less when it was too much."""

    def __init__(self, model: LocalModel, chat: Chat, max_output: int | None, place: QueuePosition) -> None:
        self._model = model
        self._chat = chat
        self._place = place
        options = model.options
        wanted = max_output or options.max_output_tokens or MAX_OUTPUT_TOKENS
        self._max_output = min(wanted, options.max_output_tokens or wanted, model.context_size // 2)

    def __call__(self, give: Give[Chunk]) -> None:
        try:
            self._answer(ENGINE.load(self._model.setup), give)
        finally:
            self._place.leave()

    def _answer(self, server: LlamaServer, give: Give[Chunk]) -> None:
        room = self._model.context_size - self._max_output
        characters = int(room * CHARACTERS_PER_TOKEN)
        for _ in range(MAX_TRIES):
            body = self._body(characters)
            refusal = _ask(server, body, give)
            if refusal is None:
                return
            tokens = refusal.get("n_prompt_tokens")
            if not isinstance(tokens, int) or tokens <= 0:
                raise ModelFailure(f"llama.cpp refused the request: {refusal.get('message') or 'it does not say why'}")
            written = sum(len(message["content"]) for message in body["messages"])
            characters = int(min(characters, written) * 0.9 * room / tokens)
        raise ContextOverflow(f"the conversation is too long for {self._model.name}; /compact makes it shorter")

    def _body(self, max_characters: int) -> dict[str, Any]:
        temperature = self._model.options.temperature
        body: dict[str, Any] = {
            "messages": self._chat.write(max_characters),
            "max_tokens": self._max_output,
            "temperature": TEMPERATURE if temperature is None else temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # or nothing could be cancelled before the first token
        }
        if self._chat.tools:
            body |= {
                "grammar": grammar(self._chat.tools),
                "reasoning_format": "none",
                "chat_template_kwargs": {"enable_thinking": False},
            }
        return body


def _ask(server: LlamaServer, body: dict[str, Any], give: Give[Chunk]) -> dict[str, Any] | None:
    """Ask, and return the error when that is the answer."""
    refusals: list[dict[str, Any]] = []

    def take(chunk: Chunk) -> bool:
        if "choices" in chunk:
            return give(chunk)
        refusals.append(chunk.get("error") or chunk)
        return True

    server.handle_chat_completions(body, take)
    return refusals[0] if refusals else None
