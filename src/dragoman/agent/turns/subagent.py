"""A subagent: part of the work, shown as a separate session below the session of the turn.

    async with turn.subagent("Reader", description="Reads the notes") as reader:
        await reader.instruct("Read notes.txt")
        await reader.say("I look at the file.")
        await reader.report("It has three lines.")

A client with the capability `subagents` sees the start and the end of that session, the messages to and from it, and
its text. For any other client it is a tool call whose content is the last report. The log has the updates of the first
kind, without the subagent's own text, and a replay converts them for each client.
"""

import asyncio
import uuid
from typing import Any, Self

from dragoman.agent.sessions.session import Session
from dragoman.agent.turns.unawaited import must_await
from dragoman.errors import ErrorCode
from dragoman.protocol import v1

TOOL_NAME = "subagent"
"""The name of the tool call that represents a subagent."""


class Subagent:
    """A running subagent. `async with` announces it and ends it as done, failed or cancelled."""

    def __init__(self, session: Session, title: str, description: str | None = None) -> None:
        self.id = str(uuid.uuid4())
        """The ID of its session."""
        self.unawaited = session.unawaited
        self._session = session
        self._title = title
        self._description = description
        self._message_id = str(uuid.uuid4())

    async def __aenter__(self) -> Self:
        running = v1.StateUpdate(state="running")
        announcement = v1.SubagentUpdate(session_id=self.id, title=self._title, state=running)
        if self._description is not None:
            announcement.description = self._description
        self._put(announcement)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        end = v1.StateUpdate(state="idle", stop_reason="end_turn")
        if isinstance(error, asyncio.CancelledError):
            end.stop_reason = "cancelled"
        elif error is not None:
            end.stop_reason = "error"
            end.error = v1.Error(code=ErrorCode.INTERNAL_ERROR, message=str(error) or type(error).__name__)
        self._put(v1.SubagentUpdate(session_id=self.id, state=end))

    @must_await
    async def instruct(self, text: str) -> None:
        """Show a message from the agent to the subagent."""
        await self._send_message(text, self._session.id, self.id)

    @must_await
    async def report(self, text: str) -> None:
        """Show a message from the subagent to the agent."""
        await self._send_message(text, self.id, self._session.id)

    @must_await
    async def say(self, text: str) -> None:
        """Show a piece of the subagent's text. Clients without subagents do not receive it."""
        block = v1.TextContent(text=text)
        await self.send(v1.AgentMessageChunk(content=block, message_id=self._message_id))

    @must_await
    async def send(self, update: v1.SessionUpdate) -> None:
        """Send any update of the subagent's session, such as its tool calls. It is not logged."""
        if self._session.client.shows_subagents:
            await self._session.updates.send_for_subagent(self.id, update)

    async def _send_message(self, text: str, sender: str, recipient: str) -> None:
        """Show a message in both sessions, because each has its own view of it."""
        message = v1.SessionMessage(
            message_id=str(uuid.uuid4()),
            sender_session_id=sender,
            recipient_session_id=recipient,
            content=[v1.TextContent(text=text)],
        )
        self._put(message)
        await self._session.updates.flow()
        view = v1.SessionMessage(
            message_id=str(uuid.uuid4()),
            sender_session_id=sender,
            recipient_session_id=recipient,
            content=message.content,
        )
        if recipient == self.id:
            view.sender_message_id = message.message_id
        else:
            view.recipient_message_id = message.message_id
        await self.send(view)
        self._message_id = str(uuid.uuid4())

    def _put(self, update: v1.SubagentUpdate | v1.SessionMessage) -> None:
        updates = self._session.updates
        if self._session.client.shows_subagents:
            updates.put(update)
            return
        updates.record_update(update)
        updates.send_unlogged(as_tool_call(update, self._session.id))


def as_tool_call(update: v1.SubagentUpdate | v1.SessionMessage, session_id: str) -> v1.ToolCall | v1.ToolCallProgress:
    """Return the tool call update that represents an update of a subagent, for clients without subagents."""
    # A message to the subagent is the call's input, and a message from it is the output. The first state announces the
    # call, and the last one ends it.
    if isinstance(update, v1.SessionMessage):
        text = "".join(block.text for block in update.content or [] if isinstance(block, v1.TextContent))
        if update.sender_session_id == session_id:
            return v1.ToolCallProgress(
                tool_call_id=str(update.recipient_session_id or update.message_id), raw_input={"message": text}
            )
        shown: list[v1.ToolCallContent] = [v1.Content(content=v1.TextContent(text=text))]
        return v1.ToolCallProgress(
            tool_call_id=str(update.sender_session_id or update.message_id), content=shown, raw_output={"output": text}
        )
    state = update.state if isinstance(update.state, v1.StateUpdate) else None
    if isinstance(update.title, str):
        fields: dict[str, Any] = {}
        if isinstance(update.description, str):
            fields["content"] = [v1.Content(content=v1.TextContent(text=update.description))]
        return v1.ToolCall(
            tool_call_id=update.session_id,
            title=update.title,
            kind="think",
            status="in_progress",
            name=TOOL_NAME,
            **fields,
        )
    failed = state is not None and state.stop_reason in ("error", "cancelled")
    end = v1.ToolCallProgress(tool_call_id=update.session_id, status="failed" if failed else "completed")
    if state is not None and state.error is not None:
        end.content = [v1.Content(content=v1.TextContent(text=state.error.message))]
    return end
