"""Prompts that people sent while the agent was at work, and that wait for the end of its turn.

A viewer marks such a prompt with an id, `_meta.dragoman.queue`. All viewers of the session see the queue and can change
it; the prompts are sent in their order, also when nobody looks any more. The request is answered like any other prompt,
by the end of its own turn. The queue is in memory alone: it outlasts the pages, not the bridge.

A turn that failed or was stopped holds the queue: what a person wanted next may make no sense any more. It goes on when
somebody says so, or after the next turn that ends well.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Subscription, Viewer, ViewerRequest
from dragoman.bridge.envelope import decode_fields, encode, fields_of, make_notification, parse_list, string_of
from dragoman.errors import ErrorCode
from dragoman.text.secret import hide_command_secrets

MAX_QUEUED = 20
MAX_QUEUED_BYTES = 16 * 1024 * 1024

HOLDING_ENDS = ("cancelled", "refusal")
"""Ends of a turn after which prompts that wait are not sent by themselves; nor are they after an error."""


class QueuedPrompt(msgspec.Struct, eq=False):
    """One prompt that waits."""

    id: str
    request: ViewerRequest

    @property
    def text(self) -> str:
        """The text of it that a person wrote."""
        return "\n".join(text for block in self._blocks if (text := _text_of(block)) is not None)

    def change(self, text: str) -> None:
        """Give it another text; pictures and files stay with it."""
        others = [block for block in self._blocks if _text_of(block) is None]
        blocks = [Raw(encode({"type": "text", "text": text})), *others] if text.strip() else others
        self.request.params = Raw(encode({**fields_of(self.request.params), "prompt": blocks}))
        self.request.line = encode({**decode_fields(self.request.line), "params": self.request.params})

    def describe(self) -> dict[str, Any]:
        """Give the part of it that a list shows."""
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
    """The prompts of one session that wait, in their order."""

    def __init__(self) -> None:
        self.is_held = False
        self._prompts: list[QueuedPrompt] = []

    def __len__(self) -> int:
        return len(self._prompts)

    def add(self, id_: str, request: ViewerRequest) -> bool:
        """Have a prompt wait; one too many is refused."""
        has_room = self._bytes() + len(request.line) <= MAX_QUEUED_BYTES
        if len(self._prompts) >= MAX_QUEUED or not has_room or self.find(id_) is not None:
            most = f"{MAX_QUEUED} messages or {MAX_QUEUED_BYTES // 1024 // 1024} MiB"
            request.refuse(ErrorCode.INVALID_PARAMS, f"the queue takes {most}, each with its own id; send this later")
            return False
        self._prompts.append(QueuedPrompt(id_, request))
        return True

    def find(self, id_: str | None) -> QueuedPrompt | None:
        """Give a prompt that waits, by its id."""
        return next((each for each in self._prompts if each.id == id_), None)

    def remove(self, queued: QueuedPrompt) -> None:
        """Take a prompt out; its sender is told that it was not sent."""
        self._prompts.remove(queued)
        queued.request.refuse(ErrorCode.REQUEST_CANCELLED, "the message was taken out of the queue")

    def hold(self, *, is_held: bool) -> bool:
        """Hold the queue or let it go on; tells whether that changes anything for prompts that wait."""
        was_held, self.is_held = self.is_held, is_held
        return was_held != is_held and bool(self._prompts)

    def take(self) -> ViewerRequest | None:
        """Give the next prompt to be sent, if the queue goes on."""
        return None if self.is_held or not self._prompts else self._prompts.pop(0).request

    def clear(self) -> None:
        """Take all prompts out, because the session is closed."""
        for queued in list(self._prompts):
            self.remove(queued)

    def tell(self, session_id: str, subscriptions: Mapping[Viewer, Subscription]) -> None:
        """Tell viewers of its session which prompts wait."""
        told = {"sessionId": session_id, "prompts": [each.describe() for each in self._prompts], "held": self.is_held}
        line = make_notification("_dragoman/queue", told)
        for viewer, subscription in subscriptions.items():
            if viewer.knows_extensions:
                viewer.send(line, subscription)

    def _bytes(self) -> int:
        return sum(len(each.request.line) for each in self._prompts)


def take_mark(request: ViewerRequest) -> str | None:
    """Give the id with which a prompt is marked to wait, and take the mark out of it: it is not for the agent."""
    params = fields_of(request.params)
    meta = fields_of(params.get("_meta", UNSET))
    mark = string_of(fields_of(meta.pop("dragoman", UNSET)).get("queue"))
    if mark is None:
        return None
    rest = {key: value for key, value in params.items() if key != "_meta"}
    request.params = Raw(encode({**rest, "_meta": meta} if meta else rest))
    request.line = encode({**decode_fields(request.line), "params": request.params})
    return mark
