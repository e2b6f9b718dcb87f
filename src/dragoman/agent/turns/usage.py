"""The tokens that the models of a session used."""

import msgspec

from dragoman.telemetry.operation import usage_attributes


class TokenUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tokens that requests used, and their cost if known."""

    input: int
    """All input tokens, including cached ones."""
    output: int
    """All output tokens, including thoughts."""
    cost_usd: float | None = None
    cached_read: int = 0
    cached_write: int = 0
    thought: int = 0

    def attributes(self) -> dict[str, int]:
        """Return the tokens as attributes of a span."""
        return usage_attributes(
            input_tokens=self.input,
            output_tokens=self.output,
            cached_read=self.cached_read,
            cached_write=self.cached_write,
            thought=self.thought,
        )

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        costs = [usage.cost_usd for usage in (self, other) if usage.cost_usd is not None]
        return TokenUsage(
            self.input + other.input,
            self.output + other.output,
            sum(costs) if costs else None,
            self.cached_read + other.cached_read,
            self.cached_write + other.cached_write,
            self.thought + other.thought,
        )
