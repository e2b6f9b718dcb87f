"""What a tap is asked to do with what passes."""

import msgspec


class TapOptions(msgspec.Struct, frozen=True):
    """Where the conversation and the findings go."""

    out: str | None = None
    """The file to record to; where it is there already, another name is made of it."""
    findings: str | None = None
    """The file that gets the findings, one JSON object a line; likewise."""
    live: bool = False
    """Whether findings are shown on stderr as they come."""
    keep_secrets: bool = False
    record_only: bool = False
    """Whether nothing is judged."""
