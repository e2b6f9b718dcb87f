"""The keys of the agent file, as a person writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.agent.profile.instructions import TextFile
from dragoman.agent.profile.limits import Limits
from dragoman.agent.profile.model import ModelSettings, Name
from dragoman.agent.profile.permissions import Permissions


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent file of dragoman."""

    model: Annotated[
        Name | ModelSettings | None,
        Meta(description="The model that sessions talk with: its name, or a mapping. The default is built in: guide."),
    ] = None
    instructions: Annotated[
        str | TextFile, Meta(description="What the model is told at the start of every session: a text, or {file: …}.")
    ] = ""
    permissions: Annotated[Permissions, Meta(description="What runs unasked.")] = Permissions()
    limits: Annotated[Limits, Meta(description="What a turn may use.")] = Limits()
