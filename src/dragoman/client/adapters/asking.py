"""Asks an ACP agent for a framework: one prompt at a time, with its events passed on."""

import asyncio
from collections.abc import Awaitable, Callable

from dragoman.client.events import Event, TurnFinished
from dragoman.client.sessions.session import Session

EventFunction = Callable[[Event], Awaitable[None] | None]
"""Receives each event while the agent works. May be a coroutine function."""


class Asker:
    """Sends prompts to one session. Frameworks call tools in parallel, and a session has one turn at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, prompt: str, on_event: EventFunction | None) -> TurnFinished:
        """Send a prompt and return the end of its turn. A cancelled task cancels the turn.

        Raises the errors of `Session.prompt`.
        """
        async with self._one_at_a_time, self._session.prompt(prompt) as turn:
            async for event in turn:
                if on_event is not None and (waiting := on_event(event)) is not None:
                    await waiting
                if isinstance(event, TurnFinished):
                    return event
        raise AssertionError("a turn ends with TurnFinished or an error")


def answer_of(end: TurnFinished) -> str:
    """Return the agent's answer for a model, with a note if the agent stopped before it was done."""
    if end.stop_reason == "end_turn":
        return end.text
    return f"{end.text}\n\n[The agent stopped before it was done: {end.stop_reason}]".lstrip()
