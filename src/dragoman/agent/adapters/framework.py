"""Common parts of the adapters: the rule for asking, shown tool calls, prompt parts, and a framework's memory.

A framework runs its own loop of model and tools. An adapter streams the output of the loop and wraps each tool. The
call is announced, permission is requested if the author's rule says so, the framework runs the call, and its result is
shown. The messages of the framework are stored in the session log, one record per turn, so that a loaded session has
the memory that the framework had.
"""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from dragoman.agent import Agent, Session, Turn
from dragoman.errors import DragomanError
from dragoman.protocol import v1

AskRule = bool | Collection[str] | Callable[[str, dict[str, Any]], bool]
"""Which tools ask before they run: all, none, the named ones, or those for which the function returns True."""

R = TypeVar("R")


class CallDeniedError(DragomanError):
    """A call was denied. The message is for the model."""


class ToolRule(msgspec.Struct, frozen=True):
    """The author's settings for the framework's tools: which of them ask, and their ACP kinds."""

    asks: AskRule = True
    kinds: Mapping[str, v1.ToolKind] = {}

    def asks_about(self, name: str, arguments: dict[str, Any]) -> bool:
        """Return whether a call asks before it runs."""
        if isinstance(self.asks, bool):
            return self.asks
        return bool(self.asks(name, arguments)) if callable(self.asks) else name in self.asks


async def show_call(
    turn: Turn, rule: ToolRule, name: str, arguments: dict[str, Any], execute: Callable[[], Awaitable[R]]
) -> R:
    """Announce a call of a framework's tool, ask if the rule says so, run it and show its result.

    Raises CallDeniedError and the tool's exceptions, which mark the call as failed.
    """
    asks = rule.asks_about(name, arguments)
    kind = rule.kinds.get(name, "other")
    async with turn.tool(name, name=name, kind=kind, raw_input=arguments, asks=asks) as call:
        if asks and not await call.allowed():
            await call.end()
            raise CallDeniedError(f"not allowed: {call.denial}")
        result = await execute()
        text = result_text(result)
        if text:
            await call.show(text)
        return result


def result_text(result: object) -> str:
    """Return a tool's result as text: strings unchanged, other values as JSON, and the rest by `str`."""
    if result is None or isinstance(result, str):
        return str(result or "")  # a plain str, because some frameworks return subclasses
    if isinstance(text := getattr(result, "text", None), str):  # a message
        return str(text)
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        return msgspec.json.encode(result, enc_hook=_encode_unknown).decode()
    return str(result)


def _encode_unknown(value: object) -> object:
    dump = getattr(value, "model_dump", None)  # frameworks use pydantic models
    return dump(mode="json") if callable(dump) else str(value)


# ── the prompt ────────────────────────────────────────────────────────────────────────────────────


def prompt_parts(turn: Turn) -> list[str | v1.ImageContent | v1.AudioContent]:
    """Return the parts of the prompt: text, links and files as text, images and audio unchanged."""
    return [_part(block) for block in turn.prompt]


def prompt_text(turn: Turn) -> str:
    """Return the prompt as one text. Images and audio are only mentioned."""
    return "\n\n".join(
        part if isinstance(part, str) else f"[{part.mime_type}, not repeated here]" for part in prompt_parts(turn)
    )


def _part(block: v1.ContentBlock) -> str | v1.ImageContent | v1.AudioContent:
    match block:
        case v1.TextContent(text=text):
            return text
        case v1.ImageContent() | v1.AudioContent():
            return block
        case v1.ResourceLink():
            return f"[{block.title or block.name}]({block.uri})"
        case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
            return f'<resource uri="{uri}">\n{text}\n</resource>'
        case v1.EmbeddedResource(resource=resource):
            return f"[{resource.uri}, {getattr(resource, 'mime_type', None) or 'binary'}]"
        case _:
            return "[content of an unknown type]"


# ── the framework's memory ────────────────────────────────────────────────────────────────────────


class _TurnRecord(msgspec.Struct):
    framework: str = ""
    messages: list[Any] = []


class FrameworkMemory:
    """The messages of a framework by session, as JSON values. The session log has one record of them per turn."""

    def __init__(self, agent: Agent, framework: str) -> None:
        self._framework = framework
        self._messages: WeakKeyDictionary[Session, list[Any]] = WeakKeyDictionary()
        agent.on_open(self._begin)
        agent.on_record(self._restore)

    def messages(self, session: Session) -> list[Any]:
        """Return the messages of all turns so far."""
        return self._messages.setdefault(session, [])

    def extend(self, session: Session, messages: Sequence[Any]) -> None:
        """Add the messages of a turn. Raises LogError."""
        if messages:
            session.record(_TurnRecord(self._framework, list(messages)))
            self.messages(session).extend(messages)

    async def _begin(self, session: Session) -> None:
        self._messages[session] = []

    def _restore(self, session: Session, data: bytes) -> None:
        record = msgspec.json.decode(data, type=_TurnRecord)
        if record.framework == self._framework:
            self.messages(session).extend(record.messages)


# ── the current turn ──────────────────────────────────────────────────────────────────────────────

_turn: ContextVar[Turn | None] = ContextVar("dragoman_turn", default=None)


@contextlib.contextmanager
def running(turn: Turn) -> Generator[None]:
    """Make `current_turn` return this turn, in this task and in the tasks that it starts."""
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)


def current_turn() -> Turn | None:
    """Return the turn that is being answered, for tools of a framework that send text or ask the user."""
    return _turn.get()
