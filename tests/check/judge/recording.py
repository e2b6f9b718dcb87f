"""A transport that records its messages for the judge."""

import time
from collections.abc import Sequence

from dragoman.check import AgentMemory, Finding, Judge, RecordedConversation
from dragoman.protocol import v1
from dragoman.protocol.methods import INITIALIZE
from dragoman.testing import ScriptedClient
from dragoman.wire.framing import Oversized
from dragoman.wire.transport import Receiver


class Recording:
    """Records the messages between a client and the transport to its agent."""

    def __init__(self, transport) -> None:
        self.conversation = RecordedConversation("recorded")
        self._transport = transport

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def start(self, receiver: Receiver, tasks) -> None:
        self._transport.start(_Ear(receiver, self.conversation), tasks)

    def write(self, lines: bytes | bytearray) -> None:
        for line in bytes(lines).splitlines():
            self.conversation.add("client", line, time.monotonic())
        self._transport.write(lines)

    def findings(self, memory: AgentMemory | None = None) -> list[Finding]:
        judge = self.judge(memory)
        assert judge.failures == []
        return judge.findings

    def judge(self, memory: AgentMemory | None = None) -> Judge:
        judge = Judge(self.conversation, memory=memory)
        for entry in self.conversation.entries:
            judge.see(entry)
        judge.end()
        return judge


class _Ear:
    def __init__(self, receiver: Receiver, conversation: RecordedConversation) -> None:
        self._receiver = receiver
        self._conversation = conversation

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        for line in lines:
            assert isinstance(line, bytes)
            self._conversation.add("agent", line, time.monotonic())
        self._receiver.lines_received(lines)

    def input_ended(self, *, was_file: bool) -> None:
        self._receiver.input_ended(was_file=was_file)


async def introduce(client: ScriptedClient, capabilities: v1.ClientCapabilities | None = None) -> v1.InitializeResponse:
    """Initialize with a client name and version."""
    return await client.connection.call(
        INITIALIZE,
        v1.InitializeRequest(
            protocol_version=1,
            client_capabilities=capabilities or v1.ClientCapabilities(),
            client_info=v1.Implementation(name="test", version="1"),
        ),
    )
