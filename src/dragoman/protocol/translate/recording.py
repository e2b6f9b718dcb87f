"""A recorded conversation of version 2, as version 1 has it, for readers that know version 1 alone.

Both sides of a recording speak the same version. Two translators in a row give the messages in the middle:

    client, version 2  ─  TranslatorForV2Client  ─  version 1  ─  TranslatorForV1Client  ─  agent, version 2
"""

from dragoman.protocol.translate.envelope import Object
from dragoman.protocol.translate.for_v1_client import TranslatorForV1Client
from dragoman.protocol.translate.for_v2_client import TranslatorForV2Client


class RecordedTranslation:
    """Translates the messages of a recording, each of which is given in the order in which it passed."""

    def __init__(self) -> None:
        self._near = TranslatorForV2Client()
        self._far = TranslatorForV1Client()

    def sent(self, message: Object) -> list[Object]:
        """Return what the client sent, in place of a message of it."""
        return self._forward(self._near.from_client(message).to_agent)

    def received(self, message: Object) -> tuple[list[Object], list[Object]]:
        """Return what the client received and what it sent, in place of a message of the agent.

        A prompt of version 2 can wait for the end of a turn: version 1 sends it then.
        """
        received = self._far.from_agent(message).to_client
        sent: list[Object] = []
        for each in received:
            sent += self._forward(self._near.from_agent(each).to_agent)
        return received, sent

    def _forward(self, messages: list[Object]) -> list[Object]:
        for each in messages:
            self._far.from_client(each)
        return messages
