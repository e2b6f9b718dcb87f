"""The keys `model`, `instructions`, `permissions`, `limits` and `search` of the agent file, as a person writes them.

A secret among them is revealed only where it is used.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from dragoman.assistant.yaml import KeyConflict
from dragoman.errors import DragomanError

PREFIX = "env://"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class MissingVariable(DragomanError):
    """A secret is to come from an environment variable that is not set."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        super().__init__(
            f"the environment variable {variable} is not set, and the agent file takes a secret from it; "
            "set it where the agent is started (an editor may have its own place for that), then start it again"
        )


class Secret:
    """A secret as the file has it: the text itself, or `env://NAME`, which is looked up on every use.

    Nothing shows it: not `repr`, not `str`, and no encoder knows the type.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if text.startswith(PREFIX) and not _VARIABLE.fullmatch(text.removeprefix(PREFIX)):
            raise ValueError(f"expected the name of an environment variable after {PREFIX}")
        self._text = text

    @property
    def variable(self) -> str | None:
        """The environment variable that it comes from, if it does."""
        return self._text.removeprefix(PREFIX) if self._text.startswith(PREFIX) else None

    def reveal(self, environment: Mapping[str, str] = os.environ) -> str:
        """Return the secret itself; raises MissingVariable."""
        if self.variable is None:
            return self._text
        found = environment.get(self.variable)
        if not found:
            raise MissingVariable(self.variable)
        return found

    def __repr__(self) -> str:
        return f"Secret({PREFIX}{self.variable})" if self.variable else "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def find_secrets(value: Any) -> Iterator[Secret]:
    """Yield every secret inside a struct, wherever it sits."""
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
    """A text that is kept in a file of its own."""

    file: Annotated[
        str,
        Meta(
            min_length=1,
            description="The path, relative to the agent file. A project's own may only name files inside it.",
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
    """Options of every request to the model; an option that is left out is the provider's choice."""

    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="How freely it chooses its words.")
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="How long one reply may be, in tokens.")
    ] = None
    thought_level: Annotated[
        str | None, Meta(description="How hard it thinks, where the model has levels, such as low or high.")
    ] = None
    headers: Annotated[
        dict[str, Secret],
        Meta(description="HTTP headers to send with every request; a value may be env://NAME."),
    ] = {}


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model, its address, and the options of its requests."""

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
            description="The key; env://NAME takes it from the environment. "
            "The default is the provider's own variable, or none with a base_url."
        ),
    ] = None
    options: Annotated[ModelOptions, Meta(description="What is asked of the model with every request.")] = (
        ModelOptions()
    )


Mode = Literal["ask", "code", "plan", "yolo"]


class Permissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mode in which sessions begin, and the modes that may be chosen."""

    mode: Annotated[
        Mode,
        Meta(
            description="The mode that a session begins in. ask: reads run, everything else asks. "
            "code: edits inside the project run too. plan: only reads. yolo: everything runs."
        ),
    ] = "ask"
    allow_yolo: Annotated[bool, Meta(description="Whether the mode yolo may be chosen at all.")] = False
    ask_outside_reads: Annotated[
        bool, Meta(description="Whether reading a file outside the project asks, instead of being refused.")
    ] = False
    remember: Annotated[
        Literal["session", "project"],
        Meta(
            description='How long the option "always" of a permission request holds. '
            "session: until the session ends. project: in all sessions of the project."
        ),
    ] = "session"
    timeout_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds after which a question without an answer counts as no; null waits for ever."),
    ] = None

    def __post_init__(self) -> None:
        if self.mode == "yolo" and not self.allow_yolo:
            raise KeyConflict("mode", "yolo needs allow_yolo: true beside it")


class TurnLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of a turn, of a command and of waits."""

    turn_requests: Annotated[
        int, Meta(ge=1, description="Model requests in one turn; then it stops with max_turn_requests.")
    ] = 50
    output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Tokens that the model may write in one turn; then it stops with max_tokens. null: any."),
    ] = None
    command_timeout_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds that a command may run before it is stopped; null: as long as it takes."),
    ] = 600.0
    mcp_wait_s: Annotated[
        float, Meta(ge=0, description="Seconds that the first prompt waits for MCP servers that are still connecting.")
    ] = 10.0
    mcp_call_timeout_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds that a call of an MCP tool may take before it is cancelled; null: any."),
    ] = 300.0


class SearchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is found for a prompt among the tools, rules and references of the mode `agent`."""

    top_k: Annotated[
        int, Meta(ge=1, description="How many of the nearest texts are looked at; one rule may have several.")
    ] = 20
    top_n: Annotated[int, Meta(ge=1, description="How many tools, rules and references are put before the model.")] = 8
    min_score: Annotated[
        float, Meta(ge=0, le=1, description="How near something must be to be put before the model, from 0 to 1.")
    ] = 0.1
