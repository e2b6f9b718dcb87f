"""Prompts that may come again: a client that lost its connection cannot know which of them arrived.

Such a client gives each prompt a key, `params._meta.dragoman.key`, and sends those that were not answered again, as
they were. A prompt that is under way is then answered over the new connection, one that has ended gets its answer, and
one that never came begins its turn now. The journal has the keys too: they outlive the bridge, the turns do not.
"""

from collections.abc import Mapping

from msgspec import UNSET

from dragoman.bridge.delivery import EarlierTurn, RepeatablePrompt, ViewerRequest
from dragoman.bridge.envelope import fields_of, string_of
from dragoman.bridge.translation import V1
from dragoman.errors import ErrorCode
from dragoman.wire.message import parse_error

MAX_KEY_CHARACTERS = 100

MAX_REMEMBERED = 64
"""Prompts of one session of which the answer is kept: as many as may wait at a time."""

_CUT_OFF = (
    "the bridge ended while the agent worked on this prompt, and the agent with it; the conversation has what came of "
    "it until then; say how to go on"
)


class RepeatedPrompts:
    """The prompts of one session that have a key."""

    def __init__(self, earlier: Mapping[str, EarlierTurn]) -> None:
        self._earlier = earlier
        """Turns of earlier runs of the bridge."""
        self._known: dict[str, RepeatablePrompt] = {}

    def take(self, request: ViewerRequest) -> bool:
        """Note a prompt, or answer it if it came before; tells whether it did."""
        key = _key_of(request)
        if key is None:
            return False
        known = self._known.get(key)
        if known is None and key in self._earlier:
            _answer_earlier(request, self._earlier[key])
        elif known is None:
            self._known[key] = request.repeatable = RepeatablePrompt(key, request)
            self._forget_oldest()
            return False
        elif known.answer is not None:
            request.pass_on(known.answer)
        else:
            known.request.continue_as(request)
        return True

    def _forget_oldest(self) -> None:
        answered = [key for key, prompt in self._known.items() if prompt.answer is not None]
        for key in answered[: max(0, len(self._known) - MAX_REMEMBERED)]:
            del self._known[key]


def _key_of(request: ViewerRequest) -> str | None:
    own = fields_of(fields_of(fields_of(request.params).get("_meta", UNSET)).get("dragoman", UNSET))
    key = string_of(own.get("key"))
    return key if key and len(key) <= MAX_KEY_CHARACTERS else None


def _answer_earlier(request: ViewerRequest, turn: EarlierTurn) -> None:
    """Answer a prompt whose turn began before the bridge was started; version 2 would need the id of its message."""
    if turn.error is not None:
        error = parse_error(turn.error)
        request.refuse(error.code, error.words if error.data is UNSET else error.data)
    elif turn.stop_reason is not None and request.viewer.version == V1:
        request.answer({"stopReason": turn.stop_reason})
    else:
        request.refuse(ErrorCode.INTERNAL_ERROR, _CUT_OFF)
