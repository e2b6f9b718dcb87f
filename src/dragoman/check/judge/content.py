"""Watches content blocks and slash commands."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable
from typing import ClassVar

from dragoman.check.judge.field import part, parts, text
from dragoman.check.judge.message import Message, Object
from dragoman.check.judge.observer import Observer, watch

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
CHUNKS = ("update agent_message_chunk", "update agent_thought_chunk", "update user_message_chunk")


class ContentObserver(Observer):
    """Judges content blocks, wherever they are."""

    area: ClassVar[str] = "CONTENT"

    @watch(*CHUNKS)
    def see_chunk(self, message: Message) -> None:
        content = part(message.update, "content")
        if content.get("type") != "text":
            self._judge(content, message)

    @watch("update tool_call", "update tool_call_update")
    def see_tool_call(self, message: Message) -> None:
        for each in parts(message.update, "content"):
            content = part(each, "content")
            if content.get("type") != "text":
                self._judge(content, message)

    @watch("request session/prompt")
    def see_prompt(self, message: Message) -> None:
        for each in parts(message.params, "prompt"):
            if each.get("type") != "text":
                self._judge(each, message)

    def _judge(self, block: Object, message: Message) -> None:
        kind = text(block, "type")
        resource = part(block, "resource")
        tens = "10" if message.sender == "client" else "00"
        data = text(resource, "blob") if kind == "resource" else text(block, "data")
        if data is not None and kind in ("image", "audio", "resource"):
            self.judge(
                f"ACP-CONTENT-{tens}2",
                _is_base64(data),
                f"the data of a block of type {kind} is not base64",
                message.entry,
            )
        uri = text(resource, "uri") if kind == "resource" else text(block, "uri")
        if uri is not None and kind in ("resource", "resource_link"):
            self.judge(
                f"ACP-CONTENT-{tens}3",
                _URI.match(uri) is not None,
                f"the uri of a block of type {kind} is {uri!r}; expected one with a scheme",
                message.entry,
            )


def _is_base64(data: str) -> bool:
    try:
        b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


class CommandObserver(Observer):
    """Judges slash commands."""

    area: ClassVar[str] = "CMD"

    @watch("update available_commands_update")
    def see_commands(self, message: Message) -> None:
        names = list(_names(parts(message.update, "availableCommands")))
        if not names:
            return
        twice = sorted({each for each in names if names.count(each) > 1})
        self.judge("ACP-CMD-002", not twice, f"commands are offered twice: {twice}", message.entry)
        slashed = [each for each in names if each.startswith("/")]
        self.judge("ACP-CMD-003", not slashed, f"the names {slashed} begin with a slash", message.entry)


def _names(commands: Iterable[Object]) -> Iterable[str]:
    for each in commands:
        name = text(each, "name")
        if name is not None:
            yield name
