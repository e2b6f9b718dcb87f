"""The keys `model`, `instructions`, `permissions`, `limits` and `search`, as the user writes them in the agent file.

A secret among them is revealed only when it is used.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from dragoman.assistant.yaml import KeyConflictError
from dragoman.errors import DragomanError
from dragoman.sandbox import SandboxMode

PREFIX = "env://"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class MissingVariableError(DragomanError):
    """A secret refers to an environment variable that is not set."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        super().__init__(
            f"the environment variable {variable} is not set, and the agent file reads a secret from it; "
            "set it (for an editor, in the agent's entry of its settings) and start the agent again"
        )


class Secret:
    """A secret as written in the file: the text itself, or `env://NAME`, which is read on every use.

    Nothing shows it: neither `repr` nor `str`, and no encoder supports the type.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if text.startswith(PREFIX) and not _VARIABLE.fullmatch(text.removeprefix(PREFIX)):
            raise ValueError(f"expected the name of an environment variable after {PREFIX}")
        self._text = text

    @property
    def variable(self) -> str | None:
        """The name of its environment variable, or None."""
        return self._text.removeprefix(PREFIX) if self._text.startswith(PREFIX) else None

    def reveal(self, environment: Mapping[str, str] = os.environ) -> str:
        """Return the secret itself. Raises MissingVariableError."""
        if self.variable is None:
            return self._text
        found = environment.get(self.variable)
        if not found:
            raise MissingVariableError(self.variable)
        return found

    def __repr__(self) -> str:
        return f"Secret({PREFIX}{self.variable})" if self.variable else "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def find_secrets(value: Any) -> Iterator[Secret]:
    """Yield every secret inside a struct, at any depth."""
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from find_secrets(getattr(value, field))
    elif isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from find_secrets(each)
    elif isinstance(value, list | tuple):
        for each in cast("list[Any]", value):
            yield from find_secrets(each)


class TextFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text in a separate file."""

    file: Annotated[
        str,
        Meta(
            min_length=1,
            description="The path, relative to the agent file. A project's agent file may "
            "only name files inside the project.",
        ),
    ]


ADDRESS = r"^https?://[^/?#@\s]+([/?#]\S*)?$"

Name = Annotated[
    str,
    Meta(
        min_length=1,
        description="The model, such as anthropic:claude-sonnet-5-5, openai:gpt-5, ollama:qwen3 or script:FILE.",
        extra={"expected": "the name of a model, such as anthropic:claude-sonnet-5-5"},
    ),
]


class ModelOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of every request to the model. The provider chooses an option that is left out."""

    temperature: Annotated[Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="The sampling temperature.")] = (
        None
    )
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The maximum length of one reply, in tokens.")
    ] = None
    thought_level: Annotated[
        str | None, Meta(description="The thought level, if the model has levels, such as low or high.")
    ] = None
    headers: Annotated[
        dict[str, Secret],
        Meta(description="HTTP headers to send with every request; a value may be env://NAME."),
    ] = {}


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model, its address and its request options."""

    name: Name
    base_url: Annotated[
        Annotated[
            str,
            Meta(pattern=ADDRESS, extra={"expected": "an http or https address with no name or password in it"}),
        ]
        | None,
        Meta(description="The address of an endpoint other than the provider's own. It receives the conversation."),
    ] = None
    api_key: Annotated[
        Secret | None,
        Meta(
            description="The key; env://NAME reads it from the environment. "
            "The default is the provider's own variable, or none with a base_url."
        ),
    ] = None
    options: Annotated[ModelOptions, Meta(description="Options of every request to the model.")] = ModelOptions()


Mode = Literal["ask", "code", "plan", "yolo"]


class Permissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mode in which sessions begin, and the modes that the user may choose."""

    mode: Annotated[
        Mode,
        Meta(
            description="The mode that a session begins in. ask: reading is allowed, everything else asks. "
            "code: edits inside the project are allowed as well. plan: only reading. yolo: everything is allowed."
        ),
    ] = "ask"
    allow_yolo: Annotated[bool, Meta(description="Whether the mode yolo may be chosen.")] = False
    ask_outside_reads: Annotated[
        bool, Meta(description="Whether reading a file outside the project asks the user instead of being refused.")
    ] = False
    remember: Annotated[
        Literal["session", "project"],
        Meta(
            description='How long the option "always" of a permission request applies. '
            "session: until the session ends. project: in all sessions of the project."
        ),
    ] = "session"
    timeout_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds after which an unanswered permission request is denied; null: no limit."),
    ] = None

    def __post_init__(self) -> None:
        if self.mode == "yolo" and not self.allow_yolo:
            raise KeyConflictError("mode", "yolo needs allow_yolo: true")


OutsidePath = Annotated[
    str, Meta(pattern="^(/|~/)[^\x00]+$", extra={"expected": "a path that begins with / or ~/, and is not / itself"})
]


class SandboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sandbox of commands, and the places outside the session's directories that they may change."""

    mode: Annotated[
        bool | SandboxMode,
        Meta(
            description="The sandbox that a session begins with. off: none. workspace: commands change only the "
            "session's directories and have no network. workspace+network: the same with network."
        ),
    ] = "off"
    writable: Annotated[
        list[OutsidePath],
        Meta(description="Directories that commands in the sandbox may change as well, such as caches."),
    ] = []

    def __post_init__(self) -> None:
        check_sandbox("mode", self.mode)

    @property
    def chosen(self) -> SandboxMode:
        """The mode. YAML understands `off` as false."""
        return "off" if isinstance(self.mode, bool) else self.mode


def check_sandbox(key: str, value: object) -> None:
    """Raise KeyConflictError for `true`, which is how YAML understands `on`."""
    if value is True:
        raise KeyConflictError(key, "expected off, workspace or workspace+network, got true")


class TurnLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of turns, commands and waits."""

    turn_requests: Annotated[
        int, Meta(ge=1, description="Model requests in one turn; after that it stops with max_turn_requests.")
    ] = 50
    output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Output tokens in one turn; after that it stops with max_tokens. null: no limit."),
    ] = None
    command_timeout_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds that a command may run before it is stopped; null: no limit."),
    ] = 600.0
    mcp_wait_s: Annotated[
        float, Meta(ge=0, description="Seconds that the first prompt waits for MCP servers that are still connecting.")
    ] = 10.0
    mcp_call_timeout_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds that a call of an MCP tool may take before it is cancelled; null: no limit."),
    ] = 300.0


class SearchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the search finds tools, rules and references with `include: agent`."""

    top_k: Annotated[
        int, Meta(ge=1, description="How many of the most similar texts are considered; one rule may have several.")
    ] = 20
    top_n: Annotated[int, Meta(ge=1, description="How many tools, rules and references are sent to the model.")] = 8
    min_score: Annotated[
        float, Meta(ge=0, le=1, description="The minimum similarity of an item that is added, from 0 to 1.")
    ] = 0.1
