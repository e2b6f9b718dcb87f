"""The key `permissions`: what runs unasked."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.agent.yaml.nodes import KeyConflict

Mode = Literal["ask", "code", "plan", "yolo"]


class Permissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How sessions begin, and what may be chosen in them."""

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
