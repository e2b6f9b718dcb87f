"""Version 2 scenes about prompts and their work: cancelled, with a rejected permission, and with other content."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from dragoman.check.driver.connection import LATE_S, AgentAnswer, AgentGoneError, PendingAnswer, ProbeConnection
from dragoman.check.driver.options import ScriptTurn
from dragoman.check.driver.scenes.turns import BEGIN_S, cancel_nothing, find_permission_prompt, make_blocks
from dragoman.check.driver.stage import Stage
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, offered, part, text
from dragoman.check.judge.prompt_lifecycle import HELD_UP_S

WORKING = ("running", "requires_action")
USER_DELAY_S = 2 * HELD_UP_S
"""Time for the user to reject a request, long enough for the agent to report that it waits."""


@asynccontextmanager
async def _session(stage: Stage, name: str) -> AsyncGenerator[tuple[ProbeConnection, str]]:
    """Open a session in its own conversation, and delete it afterwards. Raises AgentGoneError if there is none."""
    if stage.knowledge.never_idles.is_set():
        raise AgentGoneError
    async with stage.joined(name) as connection:
        session_id = await stage.new_session(connection, name.replace(" ", "-"))
        if session_id is None:
            raise AgentGoneError
        yield connection, session_id
        await stage.clean_up(connection, session_id)


class Work:
    """One prompt, and the updates of its session since it was sent."""

    def __init__(self, stage: Stage, connection: ProbeConnection, session_id: str, prompt: str) -> None:
        self._stage = stage
        self._connection = connection
        self._session_id = session_id
        self._before = len(connection.updates)
        self.call: PendingAnswer = connection.prompt(session_id, prompt)

    @property
    def updates(self) -> list[Object]:
        """The updates of the session since the prompt was sent."""
        seen = self._connection.updates[self._before :]
        return [part(each, "update") for each in seen if each.get("sessionId") == self._session_id]

    @property
    def states(self) -> list[str | None]:
        """The states of the session since the prompt was sent."""
        return [text(each, "state") for each in self.updates if each.get("sessionUpdate") == "state_update"]

    @property
    def is_refused(self) -> bool:
        """Return whether the prompt was refused."""
        return self.call.done() and not self.call.result().ok

    @property
    def is_over(self) -> bool:
        """Return whether the prompt was refused, or its work has started and ended."""
        states = self.states
        has_worked = any(each in WORKING for each in states)
        return self.is_refused or (self.call.done() and bool(states) and states[-1] == "idle" and has_worked)

    async def begin(self) -> None:
        """Wait until the work is running and the agent sends output or a permission request."""
        held = self._connection.services.held
        await self._connection.wait_until(
            lambda: self.is_refused or bool(held) or (bool(self.states) and len(self.updates) > 2), BEGIN_S
        )

    async def end(self) -> None:
        """Wait for the answer and for the end of the work. Record an event on a timeout."""
        timeout_s = self._stage.options.turn_timeout_s
        reply = await self._stage.await_turn(self._connection.finish(self.call, timeout_s))
        if reply is None:
            await self._cut(self.call.done)
        if reply is None or not reply.ok:
            return
        if not await wait_for_end(self._stage, self._connection, lambda: self.is_over) and not self._connection.ended:
            self._connection.record_event(f"waited {timeout_s:g}")
            await self._cut(lambda: self.states[-1:] == ["idle"])
        await self._connection.listen()

    async def _cut(self, is_cut: Callable[[], bool]) -> None:
        """Cancel work that takes too long. An agent that is only slow then ends it. Raises AgentGoneError."""
        timeout_s = self._stage.options.timeout_s
        _cancel(self._connection, self._session_id)
        if await self._connection.wait_until(is_cut, timeout_s) or self._connection.ended:
            return
        self._connection.record_event(f"waited {timeout_s:g}")
        self._stage.knowledge.never_idles.set()
        raise AgentGoneError


async def wait_for_end(stage: Stage, connection: ProbeConnection, is_over: Callable[[], bool]) -> bool:
    """Wait for the end of work. Return False on a timeout. Raises AgentGoneError."""
    return await stage.await_turn(connection.wait_until(is_over, stage.options.turn_timeout_s))


async def run(stage: Stage, connection: ProbeConnection, session_id: str, prompt: str) -> Work:
    """Send a prompt and wait for the end of its work."""
    work = Work(stage, connection, session_id, prompt)
    await work.end()
    return work


async def converse(stage: Stage) -> None:
    """Send the prompts of the script in one session."""
    try:
        if stage.options.prompt:
            async with _session(stage, "a conversation") as (connection, session_id):
                for turn in stage.options.turns:
                    await _play(stage, connection, session_id, turn)
    finally:
        stage.knowledge.has_conversed.set()


async def _play(stage: Stage, connection: ProbeConnection, session_id: str, turn: ScriptTurn) -> None:
    services = connection.services
    asked = services.permission_count
    services.permission = "hold" if turn.cancel == "permission" else turn.permission
    work = Work(stage, connection, session_id, turn.prompt)
    if turn.cancel is not None:
        condition = (lambda: bool(services.held) or work.is_over) if turn.cancel == "permission" else None
        await (connection.wait_until(condition, BEGIN_S) if condition is not None else work.begin())
        _cancel(connection, session_id)
    await work.end()
    services.cancel_held(connection)
    if services.permission_count > asked and stage.knowledge.permission_prompt is None:
        stage.knowledge.permission_prompt = turn.prompt


def _cancel(connection: ProbeConnection, session_id: str) -> None:
    """Cancel. Then send a request whose answer proves that the agent has read the cancel.

    Permission requests stay open. The agent withdraws them, and then they are answered.
    """
    connection.notify("session/cancel", {"sessionId": session_id})
    connection.services.permission = "reject"
    connection.begin(f"_{INVENTED}heard", {"sessionId": session_id})


async def _converse_once(stage: Stage, name: str, turn: ScriptTurn, *, pause_s: float = 0.0) -> None:
    if not stage.options.prompt:
        return
    async with _session(stage, name) as (connection, session_id):
        connection.services.pause_s = pause_s
        await _play(stage, connection, session_id, turn)
        if turn.cancel == "update":
            await cancel_nothing(stage, connection, session_id)
        # Damage from a cancel or a rejection shows in the next turn.
        await _play(stage, connection, session_id, ScriptTurn(turn.prompt, permission="reject"))


async def reject(stage: Stage) -> None:
    """Reject the permissions that the agent requests, after a moment in which it waits."""
    turn = ScriptTurn(await find_permission_prompt(stage), permission="reject")
    await _converse_once(stage, "permission denied", turn, pause_s=USER_DELAY_S)


async def cancel(stage: Stage) -> None:
    """Cancel running work."""
    await _converse_once(stage, "cancelled", ScriptTurn(await find_permission_prompt(stage), cancel="update"))


async def cancel_permission(stage: Stage) -> None:
    """Cancel work that waits for a permission."""
    prompt = await find_permission_prompt(stage)
    if stage.knowledge.permission_prompt is not None:
        await _converse_once(stage, "cancelled while it asks", ScriptTurn(prompt, cancel="permission"))


async def send_unknown_answers(stage: Stage) -> None:
    """Answer permission requests with an unknown outcome and with an unknown option."""
    prompt = await find_permission_prompt(stage)
    if not stage.options.prompt or stage.knowledge.permission_prompt is None:
        return
    async with _session(stage, "an unknown answer") as (connection, session_id):
        for answer in ("unknown outcome", "unknown option"):
            connection.services.permission = answer
            await run(stage, connection, session_id, prompt)


async def close(stage: Stage) -> None:
    """Close a session that works and has another prompt, and prompt it again."""
    if not stage.options.prompt:
        return
    prompt = await find_permission_prompt(stage)
    async with _session(stage, "closed while it works") as (connection, session_id):
        connection.services.permission = "hold"
        work = Work(stage, connection, session_id, prompt)
        await work.begin()
        # This prompt may be held, join the work, or be refused. It only has to be answered.
        other = connection.prompt(session_id, prompt)
        await connection.wait_until(other.done, LATE_S)
        closing = connection.begin("session/close", {"sessionId": session_id})
        connection.services.permission = "reject"
        await connection.finish(closing, stage.options.turn_timeout_s)
        connection.services.cancel_held(connection)
        await connection.finish(work.call, stage.options.turn_timeout_s)
        await connection.finish(other, stage.options.timeout_s)
        await connection.listen()
        await connection.finish(connection.prompt(session_id, prompt), stage.options.timeout_s)


async def two_prompts(stage: Stage) -> None:
    """Send prompts while the agent works on another one. Cancel one by its id, and then all."""
    if not stage.options.prompt:
        return
    prompt = await find_permission_prompt(stage)
    async with _session(stage, "two prompts at once") as (connection, session_id):
        connection.services.permission = "hold"
        first = Work(stage, connection, session_id, prompt)
        await first.begin()
        # Further prompts may join the work, may wait, or may be refused. They only have to be answered.
        second = connection.prompt(session_id, prompt)
        await connection.wait_until(second.done, LATE_S)
        if not second.done():
            connection.notify("$/cancel_request", {"requestId": connection.last_id})
        third = connection.prompt(session_id, prompt)
        await connection.wait_until(third.done, LATE_S)
        _cancel(connection, session_id)
        await connection.wait_until(
            lambda: bool(first.states) and first.states[-1] == "idle", stage.options.turn_timeout_s
        )
        connection.services.cancel_held(connection)
        for call in (first.call, second, third):
            await connection.finish(call, stage.options.turn_timeout_s)


async def queue_prompt(stage: Stage) -> None:
    """Send a prompt while the agent works on another one, and let both finish."""
    if not stage.options.prompt:
        return
    prompt = await find_permission_prompt(stage)
    async with _session(stage, "a prompt that waits") as (connection, session_id):
        connection.services.permission, connection.services.pause_s = "reject", USER_DELAY_S
        first = Work(stage, connection, session_id, prompt)
        await first.begin()
        second = connection.prompt(session_id, prompt)  # held, joined with the work, or refused
        await first.end()
        reply = await stage.await_turn(connection.finish(second, stage.options.turn_timeout_s))
        if reply is not None and reply.ok:
            await wait_for_end(stage, connection, lambda: first.states[-1:] == ["idle"])


async def two_sessions(stage: Stage) -> None:
    """Run two sessions of one process concurrently, and cancel one of them."""
    if not stage.options.prompt:
        return
    prompt = await find_permission_prompt(stage)
    async with _session(stage, "one") as (connection, one):
        other = await stage.new_session(connection, "other")
        if other is None:
            return
        connection.services.permission = "reject"
        works = [Work(stage, connection, session_id, prompt) for session_id in (one, other)]
        await works[0].begin()
        connection.notify("session/cancel", {"sessionId": one})
        for work in works:
            await work.end()
        await stage.clean_up(connection, other)


async def cancel_parts(stage: Stage) -> None:
    """Cancel a tool call and a terminal that do not exist, and one that can be cancelled, if any."""
    if not stage.options.prompt:
        return
    timeout_s = stage.options.timeout_s
    async with _session(stage, "a tool call cancelled") as (connection, session_id):
        for method, name in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
            await connection.request(method, {"sessionId": session_id, name: f"{INVENTED}item"}, timeout_s)
        work = Work(stage, connection, session_id, stage.options.turns[0].prompt)
        for method, name in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
            await connection.wait_until(lambda name=name: work.is_over or bool(_find_cancellable(work, name)), BEGIN_S)
            for item in _find_cancellable(work, name)[:1]:
                await connection.request(method, {"sessionId": session_id, name: item}, timeout_s)
        await work.end()


def _find_cancellable(work: Work, name: str) -> list[str]:
    """Return the tool calls or terminals that can currently be cancelled."""
    able: dict[str, bool] = {}
    for update in work.updates:
        item = text(update, name)
        if item is not None and "capabilities" in update:
            able[item] = offered(part(update, "capabilities"), "cancel")
    return [item for item, is_able in able.items() if is_able]


async def contents(stage: Stage) -> None:
    """Prompt with a link, each supported content type, and an unknown type."""
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
    block: Object = {"type": "text", "text": stage.options.turns[0].prompt}
    params: Object = {"sessionId": session_id, "prompt": [block, *blocks]}
    reply = await connection.request("session/prompt", params, stage.options.turn_timeout_s)

    def is_idle() -> bool:
        seen = [part(each, "update") for each in connection.updates[before:]]
        return bool(seen) and any(text(each, "state") == "idle" for each in seen)

    if reply is not None and reply.ok:
        await wait_for_end(stage, connection, is_idle)
    return reply
