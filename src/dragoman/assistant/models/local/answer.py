"""The answer of a local model: its grammar, and the reader that makes our parts of it while the model writes.

An answer is one JSON object, either `{"reply": "…"}` or `{"tool": "NAME", "arguments": {…}}`. The decoder is held to
it by a grammar with a rule for each tool, each with that tool's own schema, so that references inside a schema keep
their meaning. Text is passed on as it comes, a tool when its arguments are long or whole.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, cast

from dragoman.assistant.models.local.engine import Chunk
from dragoman.assistant.models.local.schema import SPACING, usable_schema
from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import (
    LONG_ARGUMENTS_CHARS,
    Part,
    ReplyStop,
    ReplyText,
    ReplyThought,
    TokenUsage,
    ToolDefinition,
    ToolStart,
)

REPLY_OPENING = '{"reply": "'
TOOL_OPENING = '{"tool": "'


def write_reply(text: str) -> str:
    """Return a plain reply as the model writes it."""
    return json.dumps({"reply": text}, ensure_ascii=False)


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a call of a tool as the model writes it."""
    return json.dumps({"tool": name, "arguments": arguments}, ensure_ascii=False)


def grammar(tools: Sequence[ToolDefinition]) -> str:
    """Return the grammar of all that the model may write when it has these tools."""
    names = [f"tool_{index}" for index in range(len(tools))]
    text = {"type": "string", "minLength": 1, "x-guidance": SPACING}
    lines = [
        "%llguidance {}",
        f"start: {' | '.join(['reply', *names])}",
        f'reply: {_literal(REPLY_OPENING[:-1])} text "}}"',
        f"text: %json {json.dumps(text)}",
    ]
    for name, tool in zip(names, tools, strict=True):
        opening = f'{TOOL_OPENING[:-1]}{json.dumps(tool.name, ensure_ascii=False)}, "arguments": '
        lines.append(f'{name}: {_literal(opening)} arguments_{name} "}}"')
        lines.append(f"arguments_{name}: %json {json.dumps(usable_schema(tool.parameters))}")
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_REPLACEMENT = "�"


class JsonString:
    """The inside of a JSON string, unescaped as it arrives; half an escape waits for its other half."""

    def __init__(self) -> None:
        self._pending = ""
        self._high: int | None = None
        self.ended = False

    def feed(self, written: str) -> str:
        """Take some more of it, and return the text that is certain by now."""
        text: list[str] = []
        for letter in written:
            if self.ended:
                break
            if self._pending:
                self._pending += letter
                text.append(self._escape())
            elif letter == "\\":
                self._pending = letter
            else:
                text.append(self._flush())
                self.ended = letter == '"'
                text.append("" if self.ended else letter)
        return "".join(text)

    def _escape(self) -> str:
        written = self._pending
        if written[1] != "u":
            self._pending = ""
            return self._flush() + _ESCAPES.get(written[1], written[1])
        if len(written) < 6:
            return ""
        self._pending = ""
        try:
            return self._unit(int.from_bytes(bytes.fromhex(written[2:])))
        except ValueError:
            return self._flush() + _REPLACEMENT

    def _unit(self, unit: int) -> str:
        """Two units of UTF-16 make one character; half of a pair alone is none."""
        high, self._high = self._high, None
        if high is not None and 0xDC00 <= unit <= 0xDFFF:
            return chr(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00))
        lost = _REPLACEMENT if high is not None else ""
        if 0xD800 <= unit <= 0xDBFF:
            self._high = unit
            return lost
        return lost + (_REPLACEMENT if 0xDC00 <= unit <= 0xDFFF else chr(unit))

    def _flush(self) -> str:
        lost, self._high = self._high, None
        return "" if lost is None else _REPLACEMENT


class AnswerReader:
    """Reads one answer; an answer with an unexpected beginning is taken as plain text, so that no words are lost."""

    def __init__(self) -> None:
        self._opening = ""
        self._reply: JsonString | None = None
        self._name: JsonString | None = None
        self._call = ""
        self._tool = ""
        self._id = f"call-{uuid.uuid4()}"
        self._is_announced = False
        self._plain = False

    def feed(self, written: str) -> Iterable[Part]:
        """Take some more of the answer, and yield its parts."""
        if self._plain:
            yield ReplyText(written)
        elif self._reply is not None:
            yield from _text(self._reply.feed(written))
        elif self._name is not None:
            yield from self._more_of_call(written)
        else:
            yield from self._open(self._opening + written)

    def finish(self, *, cut_off: bool) -> Iterable[Part]:
        """Yield the remaining parts at the end of the answer."""
        if self._tool:
            yield self._use(cut_off=cut_off)
        elif self._opening:
            yield ReplyText(self._opening)

    def _open(self, written: str) -> Iterable[Part]:
        self._opening = ""
        if written.startswith(REPLY_OPENING):
            self._reply = JsonString()
            yield from _text(self._reply.feed(written[len(REPLY_OPENING) :]))
        elif written.startswith(TOOL_OPENING):
            self._name, self._call = JsonString(), TOOL_OPENING
            yield from self._more_of_call(written[len(TOOL_OPENING) :])
        elif REPLY_OPENING.startswith(written) or TOOL_OPENING.startswith(written):
            self._opening = written
        else:
            self._plain = True
            yield ReplyText(written)

    def _more_of_call(self, written: str) -> Iterable[Part]:
        self._call += written
        if self._name is not None and not self._name.ended:
            self._tool += self._name.feed(written)
        elif len(self._call) >= LONG_ARGUMENTS_CHARS and not self._is_announced:
            self._is_announced = True
            yield ToolStart(self._id, self._tool)

    def _use(self, *, cut_off: bool) -> ToolUse:
        try:
            arguments: object = json.loads(self._call)["arguments"]
        except (ValueError, KeyError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            return ToolUse(self._id, self._tool, cast("dict[str, Any]", arguments))
        problem = (
            "the answer grew too long before its arguments were whole" if cut_off else "the arguments are not JSON"
        )
        return ToolUse(self._id, self._tool, {}, f"{problem}; call the tool again with less in it")


def _text(text: str) -> Iterable[ReplyText]:
    return (ReplyText(text),) if text else ()


class LocalReplyReader:
    """Reads one reply: a JSON object where the model had tools to choose from, else plain text."""

    def __init__(self, *, constrained: bool) -> None:
        self._answer = AnswerReader() if constrained else None
        self._usage: TokenUsage | None = None
        self._cut_off = False

    def take(self, chunk: Chunk) -> Iterable[Part]:
        """Return the parts of a chunk."""
        usage = chunk.get("usage")
        if usage:
            self._usage = TokenUsage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))
        for choice in chunk["choices"]:
            self._cut_off |= choice.get("finish_reason") == "length"
            delta: dict[str, Any] = choice.get("delta") or {}
            if thought := delta.get("reasoning_content"):
                yield ReplyThought(thought)
            if written := delta.get("content"):
                yield from (ReplyText(written),) if self._answer is None else self._answer.feed(written)

    def finish(self) -> Iterable[Part]:
        """Return the remaining parts at the end of the stream."""
        if self._answer is not None:
            yield from self._answer.finish(cut_off=self._cut_off)
        if self._usage is not None:
            yield self._usage
        if self._cut_off:
            yield ReplyStop("max_tokens")
