"""`script:FILE`, the deterministic model: a YAML list of replies, each a list of parts.

    - - thought: They want a greeting.
      - text: "Hello. "
      - text: more
        repeat: 3
    - - tool: {name: read_file, arguments: {path: README.md}}
    - - delay_s: 0.5
      - usage: {input: 120, output: 45}
      - stop: max_tokens
    - - error: the provider is down

Each item of the list answers one model request. Its parts are sent in order: `text` and `thought` (one chunk each),
`tool`, `usage`, `delay_s`, `stop` (`max_tokens` or `refusal`) and `error`. A part with `repeat: N` is sent N times,
each as its own chunk. Every session starts at the first item, even in a new process. A cancelled reply counts as used.
The first item follows the last.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.models import SCRIPT_CONTENT_TYPES
from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import Part, ReplyRequest, ReplyStop, ReplyText, ReplyThought
from dragoman.assistant.yaml import YamlError, parse_yaml, plain_value
from dragoman.errors import ModelError, ScriptError

CONTEXT_SIZE = 200_000
"""The context size that the model reports."""


class ScriptDelay(msgspec.Struct, frozen=True):
    """A pause in a reply."""

    delay_s: float


class ScriptFailure(msgspec.Struct, frozen=True):
    """A failure of the model."""

    problem: str


class ScriptedToolUse(msgspec.Struct, frozen=True):
    """A tool call, with a new id each time."""

    name: str
    arguments: dict[str, Any]


class ScriptStep(msgspec.Struct, frozen=True):
    """A part of a reply and how often it is sent."""

    part: ReplyText | ReplyThought | ScriptedToolUse | TokenUsage | ReplyStop | ScriptDelay | ScriptFailure
    repeat: int = 1


ScriptReply = Sequence[ScriptStep]


class ScriptModel:
    """Replies from a list, the same in every session."""

    context_size = CONTEXT_SIZE
    content_types = SCRIPT_CONTENT_TYPES
    thought_levels: Sequence[str] = ()
    summarises = True

    def __init__(self, name: str, replies: Sequence[ScriptReply]) -> None:
        self.name = name
        self._replies = replies

    def start(self) -> "ScriptConversation":
        """Start a conversation at the first reply."""
        return ScriptConversation(self._replies)

    async def close(self) -> None:
        """Do nothing, because it holds no resources."""


class ScriptConversation:
    """The position of one session in the list."""

    def __init__(self, replies: Sequence[ScriptReply]) -> None:
        self._replies = replies
        self._position = 0

    async def reply(self, request: ReplyRequest) -> AsyncGenerator[Part]:
        """Stream the next reply to any prompt. Raises ModelError if the script says so."""
        del request
        steps = self._replies[self._position % len(self._replies)]
        self._position += 1
        for step in steps:
            part = step.part
            for _ in range(step.repeat):
                if isinstance(part, ReplyText):  # checked first, because a failing isinstance of a struct is slow
                    yield part
                elif isinstance(part, ScriptDelay):
                    await asyncio.sleep(part.delay_s)
                elif isinstance(part, ScriptFailure):
                    raise ModelError(part.problem)
                elif isinstance(part, ScriptedToolUse):
                    yield ToolUse(f"call-{uuid.uuid4()}", part.name, part.arguments)
                else:
                    yield part


def load_script(path: Path) -> ScriptModel:
    """Read a script. Raises ScriptError with file, line and reason."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScriptError(str(path), 0, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScriptError(str(path), 0, "is not UTF-8 text") from None
    except ValueError:
        raise ScriptError(str(path), 0, "is not a valid path: it contains a NUL character") from None
    return parse_script(text, str(path))


def parse_script(text: str, file: str) -> ScriptModel:
    """Parse the text of a script. Raises ScriptError with file, line and reason."""
    return ScriptModel(f"script:{file}", _Reader(file).read(text))


class _Reader:
    """Reads a script from YAML nodes, because nodes know their lines."""

    def __init__(self, file: str) -> None:
        self._file = file

    def read(self, text: str) -> list[ScriptReply]:
        try:
            root = parse_yaml(text)
        except YamlError as misread:
            raise self._translate(misread) from None
        if root.id != "sequence" or not root.value:
            raise ScriptError(self._file, 1, "expected a list of replies, each a list of parts")
        return [self._reply(item) for item in root.value]

    def _reply(self, node: Any) -> ScriptReply:
        if node.id != "sequence":
            raise self._error(node, f"expected a reply, which is a list of parts, got a {_kind(node)}")
        return [self._step(item) for item in node.value]

    def _step(self, node: Any) -> ScriptStep:
        fields = self._mapping(node, "a part such as {text: …}")
        repeat_node = fields.pop("repeat", None)
        repeat = 1 if repeat_node is None else self._number(repeat_node, "repeat", whole=True)
        if len(fields) != 1:
            raise self._error(node, f"expected one of {_KNOWN} and optionally repeat, got {_listed(fields)}")
        [(name, value)] = fields.items()
        read = _PARTS.get(name)
        if read is None:
            raise self._error(node, f"{name} is not part of a reply; expected one of {_KNOWN}")
        return ScriptStep(read(self, value), int(repeat))

    def text(self, node: Any) -> ReplyText:
        return ReplyText(self._string(node, "text"))

    def thought(self, node: Any) -> ReplyThought:
        return ReplyThought(self._string(node, "thought"))

    def failure(self, node: Any) -> ScriptFailure:
        return ScriptFailure(self._string(node, "error"))

    def delay(self, node: Any) -> ScriptDelay:
        return ScriptDelay(self._number(node, "delay_s", whole=False))

    def stop(self, node: Any) -> ReplyStop:
        reason = self._string(node, "stop")
        if reason not in ("max_tokens", "refusal"):
            raise self._error(node, f"stop: expected max_tokens or refusal, got {reason}")
        return ReplyStop(reason)

    def usage(self, node: Any) -> TokenUsage:
        fields = self._mapping(node, "usage as {input: N, output: N}")
        if set(fields) != {"input", "output"}:
            raise self._error(node, f"usage: expected input and output, got {_listed(fields)}")
        tokens = {name: int(self._number(value, f"usage.{name}", whole=True)) for name, value in fields.items()}
        return TokenUsage(**tokens)

    def tool(self, node: Any) -> ScriptedToolUse:
        fields = self._mapping(node, "a tool as {name: …, arguments: {…}}")
        if not {"name"} <= set(fields) <= {"name", "arguments"}:
            raise self._error(node, f"tool: expected name and arguments, got {_listed(fields)}")
        arguments: Any = self._value(fields["arguments"]) if "arguments" in fields else {}
        if not isinstance(arguments, dict):
            raise self._error(fields["arguments"], "tool.arguments: expected a mapping")
        return ScriptedToolUse(self._string(fields["name"], "tool.name"), cast("dict[str, Any]", arguments))

    def _mapping(self, node: Any, expected: str) -> dict[str, Any]:
        if node.id != "mapping":
            raise self._error(node, f"expected {expected}, got a {_kind(node)}")
        fields: dict[str, Any] = {}
        for key, value in node.value:
            if key.id != "scalar":
                raise self._error(key, f"expected a name, got a {_kind(key)}")
            if key.value in fields:
                raise self._error(key, f"{key.value} is given twice")
            fields[key.value] = value
        return fields

    def _string(self, node: Any, name: str) -> str:
        value = self._value(node)
        if not isinstance(value, str):
            raise self._error(node, f"{name}: expected text, got a {_kind(node)}; put it in quotes")
        return value

    def _number(self, node: Any, name: str, *, whole: bool) -> float:
        value = self._value(node)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value < 0:
            raise self._error(node, f"{name}: expected a {'whole ' if whole else ''}number of at least 0")
        return value

    def _value(self, node: Any) -> Any:
        try:
            return plain_value(node)
        except YamlError as misread:
            raise self._translate(misread) from None

    def _translate(self, misread: YamlError) -> ScriptError:
        first = misread.problems[0]
        return ScriptError(self._file, first.line, first.text)

    def _error(self, node: Any, problem: str) -> ScriptError:
        return ScriptError(self._file, node.start_mark.line + 1, problem)


_PARTS: dict[
    str,
    Callable[
        [_Reader, Any],
        ReplyText | ReplyThought | ScriptedToolUse | TokenUsage | ReplyStop | ScriptDelay | ScriptFailure,
    ],
] = {
    "text": _Reader.text,
    "thought": _Reader.thought,
    "tool": _Reader.tool,
    "usage": _Reader.usage,
    "delay_s": _Reader.delay,
    "stop": _Reader.stop,
    "error": _Reader.failure,
}
_KNOWN = ", ".join(_PARTS)


def _kind(node: Any) -> str:
    if node.id == "scalar":
        return {"tag:yaml.org,2002:str": "text", "tag:yaml.org,2002:null": "blank"}.get(
            node.tag, "number or similar value"
        )
    return {"sequence": "list", "mapping": "mapping"}[node.id]


def _listed(names: Any) -> str:
    return ", ".join(names) or "nothing"
