"""What a tap is asked to do with what passes."""

import msgspec


class TapOptions(msgspec.Struct, frozen=True):
    """Where the conversation and the findings go."""

    out: str | None = None
    """The file to record to, which must not be there yet."""
    findings: str | None = None
    """The file that gets the findings, one JSON object a line."""
    live: bool = False
    """Whether findings are shown on stderr as they come."""
    keep_secrets: bool = False
    record_only: bool = False
    """Whether nothing is judged."""
