"""The words of an answer that can be printed for good, where nothing that was printed can be taken back."""

from dragoman.client import Done, Event, Text, ToolChanged, Withdrawn


class SettledText:
    """Holds back the message that an agent may still withdraw: until it begins another, runs a tool, or is done."""

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds
        self._held: list[str] = []
        self._message_id: str | None = None

    def take(self, event: Event, text: str) -> str:
        """Take the next event, with its words; returns those that count now."""
        if not self._holds:
            return text
        match event:
            case Text(_, update):
                settled = self.finish() if update.message_id != self._message_id else ""
                self._message_id = update.message_id
                self._held.append(text)
                return settled
            case Withdrawn():
                self._held.clear()
                return ""
            case Done():
                return self.finish()
            case ToolChanged(call) if call.status in ("in_progress", "completed"):
                return self.finish()
            case _:
                return ""

    def finish(self) -> str:
        """Return what is held back: nothing can withdraw it any more."""
        held, self._held = "".join(self._held), []
        return held
