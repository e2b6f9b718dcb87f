"""What the agent replays of a session of which there is a journal already.

It is kept apart until all of it is there. The journal has what the agent may have forgotten, and every cursor into it
holds; the agent has what was said when the session was open elsewhere. Whichever has more of the user's messages stays.
"""

from dragoman.bridge.hub.journal import Journal

_USER = b'"user_message_chunk"'


class PromptCount:
    """Counts the user's messages among the notifications of a session: chunks in a row are one."""

    __slots__ = ("_within", "value")

    def __init__(self) -> None:
        self.value = 0
        self._within = False

    def see(self, line: bytes) -> None:
        """Take the next notification."""
        is_user = _USER in line
        self.value += is_user and not self._within
        self._within = is_user


class Replay:
    """A journal of what the agent replays, which may take the place of the older one."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._prompts = PromptCount()

    def add(self, line: bytes) -> None:
        """Take what the agent has replayed."""
        self._prompts.see(line)
        self.journal.add(line)

    def has_more_than(self, journal: Journal) -> bool:
        """Tell whether the session went on elsewhere since that journal was closed."""
        return not self.journal.is_lost and self._prompts.value > journal.prompts
