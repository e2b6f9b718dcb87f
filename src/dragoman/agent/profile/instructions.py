"""The key `instructions`: what the model is told at the start of every session."""

from typing import Annotated

import msgspec
from msgspec import Meta


class TextFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that is kept in a file of its own."""

    file: Annotated[
        str,
        Meta(
            min_length=1,
            description="The path, relative to the agent file. A project's own may only name files inside it.",
        ),
    ]
