"""Work for another ACP agent, shown as a subagent of the turn.

The kit does not import the client. `delegate` therefore receives a session that the program opened with
`dragoman.client`, and uses only the methods below. The program also decides on the other agent's permission requests,
by the policy of that connection.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Protocol, runtime_checkable

from dragoman.agent.turns.prepared_call import ToolError
from dragoman.agent.turns.turn import Turn
from dragoman.protocol import v1

_SHOWN = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.ToolCall, v1.ToolCallProgress, v1.Plan)
"""The updates that belong to the work. The others are about the other agent's own session."""


class PromptEvents(Protocol):
    """The events of a prompt, as `dragoman.client.Turn` has them."""

    def __aiter__(self) -> AsyncIterator[object]: ...

    async def aclose(self) -> None:
        """Cancel the turn if it still runs, and wait for its end."""
        ...


class DelegateSession(Protocol):
    """A session with another agent, such as a `dragoman.client.Session`."""

    def prompt(self, prompt: str, /) -> PromptEvents:
        """Send a prompt."""
        ...


@runtime_checkable
class _Finished(Protocol):
    stop_reason: str
    text: str


async def delegate(
    turn: Turn, session: DelegateSession, prompt: str, *, title: str, description: str | None = None
) -> str:
    """Send a prompt to another agent, show its work as a subagent of the turn, and return its answer.

    `session` is a session of `dragoman.client`. If the turn is cancelled, the other agent's turn is cancelled as well.
    Raises ToolError if the other agent stops before it is done, and the errors of the session.
    """
    async with turn.subagent(title, description=description) as subagent:
        await subagent.instruct(prompt)
        stop_reason, text = "", ""
        async with aclosing(session.prompt(prompt)) as events:
            async for event in events:
                update = getattr(event, "update", None)
                if isinstance(update, _SHOWN):
                    await subagent.send(update)
                elif isinstance(event, _Finished):
                    stop_reason, text = event.stop_reason, event.text
        await subagent.report(text)
        if stop_reason != "end_turn":
            raise ToolError(f"{title} stopped before it was done: {stop_reason}")
    return text
