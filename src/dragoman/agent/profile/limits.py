"""The key `limits`: what a turn may use."""

from typing import Annotated

import msgspec
from msgspec import Meta


class TurnLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a turn, a command or a wait ends."""

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
