"""Recognition of user messages in which an agent repeats its prompt.

A client already shows its own prompt. Version 1 does not require the agent to repeat it, but some agents do. They
repeat the blocks unchanged, split the text differently, or put all blocks into one text.
"""

from collections.abc import Iterable


class PromptEcho:
    """Recognises the chunks that repeat one prompt.

    A block is its text, or None for an attachment. White space is ignored, because agents join blocks with line ends.
    """

    def __init__(self, blocks: Iterable[str | None]) -> None:
        blocks = list(blocks)
        self._texts = [_without_spaces(each) for each in blocks if each is not None]
        self._text = "".join(self._texts)
        self._reached = 0
        """The length of the text repeated so far."""
        self._attachments = blocks.count(None)
        self._message_id: str | None = None

    def consume(self, block: str | None, message_id: str | None) -> bool:
        """Return whether a user message chunk repeats the next part of the prompt, and advance past that part."""
        if message_id is not None and message_id == self._message_id:
            return True
        if not self._is_next(block):
            return False
        self._message_id = message_id
        return True

    def _is_next(self, block: str | None) -> bool:
        is_whole = self._reached == len(self._text)
        if block is None:
            had_any = self._attachments > 0
            self._attachments -= had_any
            return had_any
        text = _without_spaces(block)
        if not text:
            return not is_whole
        if self._text.startswith(text, self._reached):
            self._reached += len(text)
            return True
        # The agent may have put the attachments into the text.
        if self._attachments and (is_whole or all(each in text for each in self._texts)):
            self._reached, self._attachments = len(self._text), 0
            return True
        return False


def _without_spaces(text: str) -> str:
    return "".join(text.split())
