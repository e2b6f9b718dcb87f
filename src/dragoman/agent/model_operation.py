"""The requests to models in a turn, as traces show them, and the tokens that they took."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from dragoman.agent.usage import TokenUsage
from dragoman.telemetry.operation import OWN_PROVIDER, answer_attribute, count_tokens, trace_model_request

FinishReason = Literal["stop", "length", "content_filter", "tool_call"]
"""The words of the convention for the end of an answer."""


class ModelOperation:
    """One request to a model; made by `Turn.model_request`. While telemetry is off, all of it does nothing."""

    def __init__(self, provider: str, model: str, session_id: str) -> None:
        self.model = (provider or OWN_PROVIDER, model)
        """The provider and the name of the model."""
        self.traced = trace_model_request(*self.model, session_id)
        self._spent = TokenUsage(0, 0)

    def note_first_piece(self) -> None:
        """Note that the first piece of the answer has come."""
        self.traced.note_first_chunk()

    def note_end(self, reason: FinishReason, text: str = "") -> None:
        """Note why the answer ended, and its text, which is kept only where the capture of content is on."""
        self.traced.note({"gen_ai.response.finish_reasons": [reason]})
        if self.traced.captures_content:
            self.traced.note(answer_attribute(text, reason))

    def count(self, usage: TokenUsage) -> None:
        """Add to its tokens; `Turn.usage` does it."""
        self._spent += usage
        self.traced.note(self._spent.attributes())


class TurnTokens:
    """The tokens of a turn, and the request to a model that takes those that are counted now."""

    def __init__(self) -> None:
        self.spent = TokenUsage(0, 0)
        self._request: ModelOperation | None = None

    def add(self, usage: TokenUsage) -> None:
        """Count tokens, for the turn and for its open request."""
        self.spent += usage
        request = self._request
        count_tokens(request.model if request else None, input_tokens=usage.input, output_tokens=usage.output)
        if request is not None:
            request.count(usage)

    @contextmanager
    def request(self, request: ModelOperation) -> Generator[ModelOperation]:
        """Let a request take the tokens that are counted inside."""
        before, self._request = self._request, request
        try:
            with request.traced:
                yield request
        finally:
            self._request = before
