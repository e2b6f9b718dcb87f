"""A subagent: a part of the work that is shown as a session of its own, below the session of the turn.

    async with turn.subagent("Reader", description="Reads the notes") as reader:
        await reader.tell("Read notes.txt")
        await reader.say("I look at the file.")
        await reader.report("It has three lines.")

A client with the capability `subagents` sees that session begin and end, the messages to it and from it, and what it
says. For another client it is a tool call, with the last report as its content. The log has the first form, without
the words of the subagent itself, and a replay shows each client its own.
"""

import asyncio
import uuid
from typing import Any, Self

from dragoman.agent.session import Session
from dragoman.errors import ErrorCode
from dragoman.protocol import v1

TOOL_NAME = "subagent"
"""The name of the tool call that stands for a subagent."""


class Subagent:
    """A subagent at work; `async with` announces it, and ends its work: done, failed or cancelled."""

    def __init__(self, session: Session, title: str, description: str | None = None) -> None:
        self.id = str(uuid.uuid4())
        """The id of its session."""
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

    async def tell(self, text: str) -> None:
        """Show a message from the agent to the subagent."""
        await self._pass(text, self._session.id, self.id)

    async def report(self, text: str) -> None:
        """Show a message from the subagent to the agent."""
        await self._pass(text, self.id, self._session.id)

    async def say(self, text: str) -> None:
        """Show a piece of what the subagent says; a client without subagents is not shown it."""
        block = v1.TextContent(text=text)
        await self.send(v1.AgentMessageChunk(content=block, message_id=self._message_id))

    async def send(self, update: v1.SessionUpdate) -> None:
        """Send any update of the subagent's session, such as its tool calls; it is not logged."""
        if self._session.client.shows_subagents:
            await self._session.updates.send_beside(self.id, update)

    async def _pass(self, text: str, sender: str, recipient: str) -> None:
        """Show a message in both sessions: each has its own view of it."""
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
    """Return the update of the tool call that stands for a subagent of a session, where a client takes none."""
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
