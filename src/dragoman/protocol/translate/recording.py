"""A recorded version 2 conversation as version 1, for readers that only know version 1.

Both sides of a recording speak the same version. Two translators in a row produce the messages in the middle:

    client, version 2  ─  TranslatorForV2Client  ─  version 1  ─  TranslatorForV1Client  ─  agent, version 2
"""

from dragoman.protocol.translate.envelope import Object
from dragoman.protocol.translate.for_v1_client import TranslatorForV1Client
from dragoman.protocol.translate.for_v2_client import TranslatorForV2Client


class RecordedTranslation:
    """Translates the messages of a recording. Pass them in the recorded order."""

    def __init__(self) -> None:
        self._near = TranslatorForV2Client()
        self._far = TranslatorForV1Client()

    def sent(self, message: Object) -> list[Object]:
        """Return the client's version 1 messages in place of one of its messages."""
        return self._forward(self._near.from_client(message).to_agent)

    def received(self, message: Object) -> tuple[list[Object], list[Object]]:
        """Return the messages that the client received and sent, in place of one message from the agent.

        A version 2 prompt may have to wait for the end of a turn. In version 1 it is sent then.
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
