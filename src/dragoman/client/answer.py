"""The answer of a turn: the messages of the agent, without those that it has withdrawn."""

from io import StringIO


class Answer:
    """What the agent said so far, by message; chunks without an id that follow each other are one message."""

    def __init__(self) -> None:
        self._messages: list[tuple[str | None, StringIO]] = []
        self._id: str | None = None
        self._open: StringIO | None = None

    def add(self, text: str, message_id: str | None) -> None:
        """Take some of it."""
        if self._open is None or message_id != self._id:
            self._id, self._open = message_id, StringIO()
            self._messages.append((message_id, self._open))
        self._open.write(text)

    def withdraw(self, message_id: str | None) -> None:
        """Forget a message; without an id it is the last one."""
        if message_id is None:
            del self._messages[-1:]
        else:
            self._messages = [message for message in self._messages if message[0] != message_id]
        self._open = None

    def messages(self) -> list[str]:
        """Return the text of each message."""
        return [text.getvalue() for _, text in self._messages]
