"""Repeated prompts: a client that lost its connection cannot know which of its prompts arrived.

Such a client gives each prompt a key, `params._meta.dragoman.key`, and repeats the prompts that were not answered:

    the turn is running     its answer is sent over the new connection
    the turn has ended      its answer is sent at once
    unknown key             the turn begins now

The keys and the answers are in the journal, so they outlive the bridge, and a session that leaves memory. A turn does
not outlive the bridge.
"""

from collections.abc import Mapping

from msgspec import UNSET

from dragoman.bridge.viewers import RepeatablePrompt, ViewerRequest
from dragoman.errors import ErrorCode
from dragoman.wire.envelope import fields_of, string_of

MAX_KEY_CHARACTERS = 100

MAX_REMEMBERED = 64
"""Prompts per session whose answers are kept, which is as many as can wait at a time."""

_CUT_OFF = (
    "the bridge stopped while the agent worked on this prompt, and the agent with it. The conversation contains "
    "everything up to that point. Send a prompt to continue"
)


class RepeatedPrompts:
    """The prompts of one session that have a key."""

    def __init__(self, earlier: Mapping[str, bytes | None]) -> None:
        self._earlier = earlier
        """The answers that the journal had when it was opened, by key. None for a turn that was interrupted."""
        self._known: dict[str, RepeatablePrompt] = {}

    def answer_repeated(self, request: ViewerRequest) -> bool:
        """Answer a repeated prompt, and return True. Otherwise remember the prompt."""
        key = _key_of(request)
        if key is None:
            return False
        known = self._known.get(key)
        if known is None and key in self._earlier:
            if (answer := self._earlier[key]) is not None:
                request.pass_on(answer)
            else:
                request.refuse(ErrorCode.INTERNAL_ERROR, _CUT_OFF)
        elif known is None:
            self._known[key] = request.repeatable = RepeatablePrompt(key, request)
            self._forget_oldest()
            return False
        elif known.request is not None:
            known.request.continue_as(request)
        elif known.answer is not None:
            request.pass_on(known.answer)
        return True

    def _forget_oldest(self) -> None:
        answered = [key for key, prompt in self._known.items() if prompt.answer is not None]
        for key in answered[: max(0, len(self._known) - MAX_REMEMBERED)]:
            del self._known[key]


def _key_of(request: ViewerRequest) -> str | None:
    own = fields_of(fields_of(fields_of(request.params).get("_meta", UNSET)).get("dragoman", UNSET))
    key = string_of(own.get("key"))
    return key if key and len(key) <= MAX_KEY_CHARACTERS else None
