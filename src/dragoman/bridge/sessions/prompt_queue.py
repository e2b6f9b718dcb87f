"""The prompt queue of a session: prompts that were sent during a turn and wait for its end.

A viewer marks such a prompt with an id, `_meta.dragoman.queue`. All viewers of the session see the queue and can change
it. The prompts are sent in order, even if no viewer is connected any more. The request is answered like any other
prompt, at the end of its turn. The queue is only in memory. It outlives the pages, but not the bridge.

A turn that failed or was stopped holds the queue, because the user may no longer want the next prompts. The queue is
released when a viewer resumes it, or when another turn begins. Then it waits for the end of that turn.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.envelope import make_notification, parse_list
from dragoman.bridge.viewers import Subscription, Viewer, ViewerRequest
from dragoman.errors import ErrorCode, RpcError
from dragoman.text.secret import hide_command_secrets
from dragoman.wire.envelope import decode_fields, encode, fields_of, string_of

MAX_QUEUED = 20
MAX_QUEUED_BYTES = 16 * 1024 * 1024

HOLDING_ENDS = ("cancelled", "refusal")
"""Stop reasons after which the queue is held. It is also held after an error."""


class QueuedPrompt(msgspec.Struct, eq=False):
    """One waiting prompt."""

    id: str
    request: ViewerRequest

    @property
    def text(self) -> str:
        """The text that the user wrote."""
        return "\n".join(text for block in self._blocks if (text := _text_of(block)) is not None)

    def change(self, text: str) -> None:
        """Replace the text of the prompt. Keep its attachments."""
        others = [block for block in self._blocks if _text_of(block) is None]
        blocks = [Raw(encode({"type": "text", "text": text})), *others] if text.strip() else others
        self.request.params = Raw(encode({**fields_of(self.request.params), "prompt": blocks}))
        self.request.line = encode({**decode_fields(self.request.line), "params": self.request.params})

    def describe(self) -> dict[str, Any]:
        """Return the prompt as announcements show it."""
        others = [fields_of(block) for block in self._blocks if _text_of(block) is None]
        return {
            "id": self.id,
            "text": hide_command_secrets(self.text),
            "attachments": [_name_of(each) for each in others],
        }

    @property
    def _blocks(self) -> list[Raw]:
        return parse_list(fields_of(self.request.params).get("prompt"))


def _text_of(block: Raw) -> str | None:
    return string_of(fields_of(block).get("text"))


def _name_of(block: dict[str, Raw]) -> str:
    uri = string_of(fields_of(block.get("resource", UNSET)).get("uri"))
    return string_of(block.get("name")) or (uri or "").rpartition("/")[2] or string_of(block.get("type")) or ""


class PromptQueue:
    """The waiting prompts of one session, in order."""

    def __init__(self) -> None:
        self.is_held = False
        self._prompts: list[QueuedPrompt] = []

    def __len__(self) -> int:
        return len(self._prompts)

    def add(self, id_: str, request: ViewerRequest) -> None:
        """Add a prompt. Raises RpcError if too many wait."""
        has_room = self._bytes() + len(request.line) <= MAX_QUEUED_BYTES
        if len(self._prompts) >= MAX_QUEUED or not has_room or self.find(id_) is not None:
            most = f"{MAX_QUEUED} messages or {MAX_QUEUED_BYTES // 1024 // 1024} MiB"
            problem = f"the queue holds at most {most}, each with a different id; send this later"
            raise RpcError(ErrorCode.INVALID_PARAMS, problem)
        self._prompts.append(QueuedPrompt(id_, request))

    def find(self, id_: str | None) -> QueuedPrompt | None:
        """Return a waiting prompt by its id."""
        return next((each for each in self._prompts if each.id == id_), None)

    def remove(self, queued: QueuedPrompt) -> None:
        """Remove a prompt, and refuse it as not sent."""
        self._prompts.remove(queued)
        queued.request.refuse(ErrorCode.REQUEST_CANCELLED, "the message was removed from the queue")

    def hold(self, *, is_held: bool) -> bool:
        """Hold or release the queue. Return whether that changes anything for waiting prompts."""
        was_held, self.is_held = self.is_held, is_held
        return was_held != is_held and bool(self._prompts)

    def pop(self) -> ViewerRequest | None:
        """Remove and return the next prompt to be sent, if the queue is not held."""
        return None if self.is_held or not self._prompts else self._prompts.pop(0).request

    def clear(self) -> None:
        """Remove all prompts, because the session is closed."""
        for queued in list(self._prompts):
            self.remove(queued)

    def announce(self, session_id: str, subscriptions: Mapping[Viewer, Subscription]) -> None:
        """Send the waiting prompts to viewers of the session."""
        queue = {"sessionId": session_id, "prompts": [each.describe() for each in self._prompts], "held": self.is_held}
        line = make_notification("_dragoman/queue", queue)
        for viewer, subscription in subscriptions.items():
            if viewer.knows_extensions:
                viewer.send(line, subscription)

    def _bytes(self) -> int:
        return sum(len(each.request.line) for each in self._prompts)


def pop_queue_mark(request: ViewerRequest) -> str | None:
    """Return the queue id in a prompt, and remove it, because it is not for the agent. Return None without an id."""
    params = fields_of(request.params)
    meta = fields_of(params.get("_meta", UNSET))
    mark = string_of(fields_of(meta.pop("dragoman", UNSET)).get("queue"))
    if mark is None:
        return None
    rest = {key: value for key, value in params.items() if key != "_meta"}
    request.params = Raw(encode({**rest, "_meta": meta} if meta else rest))
    request.line = encode({**decode_fields(request.line), "params": request.params})
    return mark
