"""Scenes of version 2 about prompts and their work: cancelled, denied a permission, and with more than text."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.check.driver.connection import LATE_S, AgentAnswer, AgentGone, PendingAnswer, ProbeConnection
from dragoman.check.driver.options import ScriptTurn
from dragoman.check.driver.scenes.turns import BEGIN_S, find_permission_prompt, make_blocks
from dragoman.check.driver.stage import Stage
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, offered, part, text
from dragoman.check.judge.prompt_lifecycle import HELD_UP_S

WORKING = ("running", "requires_action")
THINK_S = 2 * HELD_UP_S
"""The time of a person to deny something: long enough for the agent to say that it waits."""


@asynccontextmanager
async def _session(stage: Stage, name: str) -> AsyncGenerator[tuple[ProbeConnection, str]]:
    """Open a session in a conversation of its own, and leave nothing of it behind; raises Gone when there is none."""
    async with stage.joined(name) as connection:
        session_id = await stage.new_session(connection, name.replace(" ", "-"))
        if session_id is None:
            raise AgentGone
        yield connection, session_id
        await stage.tidy(connection, session_id)


class Work:
    """One prompt, and the updates of its session since it was sent."""

    def __init__(self, stage: Stage, connection: ProbeConnection, session_id: str, words: str) -> None:
        self._stage = stage
        self._connection = connection
        self._session_id = session_id
        self._before = len(connection.updates)
        self.call: PendingAnswer = connection.prompt(session_id, words)

    @property
    def updates(self) -> list[Object]:
        """The updates of the session since the prompt was sent."""
        seen = self._connection.updates[self._before :]
        return [part(each, "update") for each in seen if each.get("sessionId") == self._session_id]

    @property
    def states(self) -> list[str | None]:
        """The states since then."""
        return [text(each, "state") for each in self.updates if each.get("sessionUpdate") == "state_update"]

    @property
    def is_refused(self) -> bool:
        """Tell whether the prompt was refused."""
        return self.call.done() and not self.call.result().ok

    @property
    def is_over(self) -> bool:
        """Tell whether the prompt was refused, or its work has begun and ended."""
        states = self.states
        has_worked = any(each in WORKING for each in states)
        return self.is_refused or (self.call.done() and bool(states) and states[-1] == "idle" and has_worked)

    async def begin(self) -> None:
        """Wait until the work shows: it is running, and the agent says something or asks."""
        held = self._connection.services.held
        await self._connection.until(
            lambda: self.is_refused or bool(held) or (bool(self.states) and len(self.updates) > 2), BEGIN_S
        )

    async def end(self) -> None:
        """Wait for the answer and for the end of the work; an event tells if one does not come in time."""
        timeout_s = self._stage.options.turn_timeout_s
        reply = await self._connection.finish(self.call, timeout_s)
        if reply is None or not reply.ok:
            return
        if not await self._connection.until(lambda: self.is_over, timeout_s) and not self._connection.ended:
            self._connection.note_event(f"waited {timeout_s:g}")
        await self._connection.listen()


async def run(stage: Stage, connection: ProbeConnection, session_id: str, words: str) -> Work:
    """Send a prompt and wait for the end of its work."""
    work = Work(stage, connection, session_id, words)
    await work.end()
    return work


async def converse(stage: Stage) -> None:
    """Send the prompts of the script, in one session."""
    try:
        if stage.options.prompt:
            async with _session(stage, "a conversation") as (connection, session_id):
                for turn in stage.options.turns:
                    await _play(stage, connection, session_id, turn)
    finally:
        stage.knowledge.has_conversed.set()


async def _play(stage: Stage, connection: ProbeConnection, session_id: str, turn: ScriptTurn) -> None:
    services = connection.services
    asked = services.asked
    services.permission = "hold" if turn.cancel == "permission" else turn.permission
    work = Work(stage, connection, session_id, turn.prompt)
    if turn.cancel is not None:
        wanted = (lambda: bool(services.held) or work.is_over) if turn.cancel == "permission" else None
        await (connection.until(wanted, BEGIN_S) if wanted is not None else work.begin())
        _cancel(connection, session_id)
    await work.end()
    services.settle(connection)
    if services.asked > asked and stage.knowledge.permission_prompt is None:
        stage.knowledge.permission_prompt = turn.prompt


def _cancel(connection: ProbeConnection, session_id: str) -> None:
    """Cancel, and send a request behind it, whose answer proves that the agent has read the cancel.

    Questions stay open: the agent takes them back, and they are answered then.
    """
    connection.notify("session/cancel", {"sessionId": session_id})
    connection.services.permission = "reject"
    connection.begin(f"_{INVENTED}heard", {"sessionId": session_id})


async def _once(stage: Stage, name: str, turn: ScriptTurn, *, pause_s: float = 0.0) -> None:
    if not stage.options.prompt:
        return
    async with _session(stage, name) as (connection, session_id):
        connection.services.pause_s = pause_s
        await _play(stage, connection, session_id, turn)
        # Damage of a cancel or a denial shows in the next turn.
        await _play(stage, connection, session_id, ScriptTurn(turn.prompt, permission="reject"))


async def reject(stage: Stage) -> None:
    """Deny the permissions that the agent asks for, after a moment in which it waits."""
    turn = ScriptTurn(await find_permission_prompt(stage), permission="reject")
    await _once(stage, "permission denied", turn, pause_s=THINK_S)


async def cancel(stage: Stage) -> None:
    """Cancel work that is under way."""
    await _once(stage, "cancelled", ScriptTurn(await find_permission_prompt(stage), cancel="update"))


async def cancel_permission(stage: Stage) -> None:
    """Cancel work that waits for a permission."""
    words = await find_permission_prompt(stage)
    if stage.knowledge.permission_prompt is not None:
        await _once(stage, "cancelled while it asks", ScriptTurn(words, cancel="permission"))


async def answer_oddly(stage: Stage) -> None:
    """Answer a permission request with an outcome that no agent can know."""
    words = await find_permission_prompt(stage)
    if not stage.options.prompt or stage.knowledge.permission_prompt is None:
        return
    async with _session(stage, "an unknown answer") as (connection, session_id):
        connection.services.permission = "odd"
        await run(stage, connection, session_id, words)


async def close(stage: Stage) -> None:
    """Close a session that works, and prompt it once more."""
    if not stage.options.prompt:
        return
    words = await find_permission_prompt(stage)
    async with _session(stage, "closed while it works") as (connection, session_id):
        connection.services.permission = "hold"
        work = Work(stage, connection, session_id, words)
        await work.begin()
        closing = connection.begin("session/close", {"sessionId": session_id})
        connection.services.permission = "reject"
        await connection.finish(closing, stage.options.turn_timeout_s)
        connection.services.settle(connection)
        await connection.finish(work.call, stage.options.turn_timeout_s)
        await connection.listen()
        await connection.finish(connection.prompt(session_id, words), stage.options.timeout_s)


async def two_prompts(stage: Stage) -> None:
    """Send prompts while another one is worked on, and cancel one by its id, and then all."""
    if not stage.options.prompt:
        return
    words = await find_permission_prompt(stage)
    async with _session(stage, "two prompts at once") as (connection, session_id):
        connection.services.permission = "hold"
        first = Work(stage, connection, session_id, words)
        await first.begin()
        # More prompts may be taken into the work, may wait, or may be refused: they only have to be answered.
        second = connection.prompt(session_id, words)
        await connection.until(second.done, LATE_S)
        if not second.done():
            connection.notify("$/cancel_request", {"requestId": connection.last_id})
        third = connection.prompt(session_id, words)
        await connection.until(third.done, LATE_S)
        _cancel(connection, session_id)
        await connection.until(lambda: bool(first.states) and first.states[-1] == "idle", stage.options.turn_timeout_s)
        connection.services.settle(connection)
        for call in (first.call, second, third):
            await connection.finish(call, stage.options.turn_timeout_s)


async def cancel_parts(stage: Stage) -> None:
    """Cancel a tool call and a terminal: some that never were, and if one offers it, that one."""
    if not stage.options.prompt:
        return
    timeout_s = stage.options.timeout_s
    async with _session(stage, "a tool call cancelled") as (connection, session_id):
        for method, name in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
            await connection.request(method, {"sessionId": session_id, name: f"{INVENTED}item"}, timeout_s)
        work = Work(stage, connection, session_id, stage.options.turns[0].prompt)
        for method, name in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
            await connection.until(lambda name=name: work.is_over or bool(_find_cancellable(work, name)), BEGIN_S)
            for item in _find_cancellable(work, name)[:1]:
                await connection.request(method, {"sessionId": session_id, name: item}, timeout_s)
        await work.end()


def _find_cancellable(work: Work, name: str) -> list[str]:
    """Return the tool calls or terminals that can be cancelled now."""
    able: dict[str, bool] = {}
    for update in work.updates:
        item = text(update, name)
        if item is not None and "capabilities" in update:
            able[item] = offered(part(update, "capabilities"), "cancel")
    return [item for item, is_able in able.items() if is_able]


async def contents(stage: Stage) -> None:
    """Prompt with a link and each kind of content that the agent takes, and with one that nobody knows."""
    if not stage.options.prompt:
        return
    async with _session(stage, "more than text") as (connection, session_id):
        blocks = make_blocks(stage, stage.directory("contents") / "notes.txt")
        reply = await _prompt(stage, connection, session_id, blocks)
        if reply is not None and not reply.ok and len(blocks) > 1:
            for block in blocks:
                await _prompt(stage, connection, session_id, [block])
        await _prompt(stage, connection, session_id, [{"type": f"_{INVENTED}block"}])


async def _prompt(
    stage: Stage, connection: ProbeConnection, session_id: str, blocks: list[Object]
) -> AgentAnswer | None:
    before = len(connection.updates)
    words: Object = {"type": "text", "text": stage.options.turns[0].prompt}
    params: Object = {"sessionId": session_id, "prompt": [words, *blocks]}
    reply = await connection.request("session/prompt", params, stage.options.turn_timeout_s)

    def is_idle() -> bool:
        seen = [part(each, "update") for each in connection.updates[before:]]
        return bool(seen) and any(text(each, "state") == "idle" for each in seen)

    if reply is not None and reply.ok:
        await connection.until(is_idle, stage.options.turn_timeout_s)
    return reply
