"""The key `model`: which model a session talks with, and how."""

from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.agent.profile.secret import Secret

ADDRESS = r"^https?://[^/?#@\s]+([/?#]\S*)?$"

Name = Annotated[
    str,
    Meta(
        min_length=1,
        description="The model, such as anthropic:claude-sonnet-4-5, openai:gpt-5, ollama:qwen3 or script:FILE.",
        extra={"expected": "the name of a model, such as anthropic:claude-sonnet-4-5"},
    ),
]


class ModelOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked of the model with every request; what is left out is the provider's choice."""

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
    """A model, where it is reached, and what is asked of it."""

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
