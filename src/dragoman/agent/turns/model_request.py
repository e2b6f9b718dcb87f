"""The model requests of a turn, as traces show them, and the tokens that they used."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from dragoman.agent.turns.usage import TokenUsage
from dragoman.telemetry.operation import OWN_PROVIDER, answer_attribute, count_tokens, trace_model_request

FinishReason = Literal["stop", "length", "content_filter", "tool_call"]
"""The OpenTelemetry convention's reasons for the end of an answer."""


class ModelRequest:
    """One model request, created by `Turn.model_request`. While telemetry is off, its methods do nothing."""

    def __init__(self, provider: str, model: str, session_id: str) -> None:
        self.model = (provider or OWN_PROVIDER, model)
        """The provider and the name of the model."""
        self.traced = trace_model_request(*self.model, session_id)
        self._spent = TokenUsage(0, 0)

    def record_first_piece(self) -> None:
        """Record that the first piece of the answer has arrived."""
        self.traced.record_first_chunk()

    def record_end(self, reason: FinishReason, text: str = "") -> None:
        """Record why the answer ended. Its text is recorded only if content capture is on."""
        self.traced.set_attributes({"gen_ai.response.finish_reasons": [reason]})
        if self.traced.captures_content:
            self.traced.set_attributes(answer_attribute(text, reason))

    def count(self, usage: TokenUsage) -> None:
        """Add to the tokens of the request. `Turn.usage` calls this."""
        self._spent += usage
        self.traced.set_attributes(self._spent.attributes())


class TurnTokens:
    """The tokens of a turn, and the open model request to which counted tokens belong."""

    def __init__(self) -> None:
        self.spent = TokenUsage(0, 0)
        self._request: ModelRequest | None = None

    def add(self, usage: TokenUsage) -> None:
        """Count tokens for the turn and for its open request."""
        self.spent += usage
        request = self._request
        count_tokens(request.model if request else None, input_tokens=usage.input, output_tokens=usage.output)
        if request is not None:
            request.count(usage)

    @contextmanager
    def request(self, request: ModelRequest) -> Generator[ModelRequest]:
        """Assign the tokens that are counted inside the context to a request."""
        before, self._request = self._request, request
        try:
            with request.traced:
                yield request
        finally:
            self._request = before
