"""Scenes about prompts: answered, cancelled, denied a permission, crossing each other, and with more than text."""

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.check.driver.client_services import EVERYTHING
from dragoman.check.driver.connection import LATE_S, AgentAnswer, AgentGone, PendingAnswer, ProbeConnection
from dragoman.check.driver.options import ScriptTurn
from dragoman.check.driver.stage import Stage
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, part
from dragoman.check.judge.session_setup import CONTENT

BEGIN_S = 10.0
"""The time for a turn to show that it is under way."""


@asynccontextmanager
async def _session(
    stage: Stage, name: str, *, without: frozenset[str] | None = None
) -> AsyncGenerator[tuple[ProbeConnection, str]]:
    """Open a session in a conversation of its own, and leave nothing of it behind; raises Gone when there is none."""
    async with stage.joined(name) if without is None else stage.greeted(name, without=without) as connection:
        session_id = await stage.new_session(connection, name.replace(" ", "-"))
        if session_id is None:
            raise AgentGone
        yield connection, session_id
        await stage.tidy(connection, session_id)


async def converse(stage: Stage) -> None:
    """Send the prompts of the script, in one session."""
    try:
        if stage.options.prompt:
            await _converse(stage)
    finally:
        stage.knowledge.has_conversed.set()


async def _converse(stage: Stage) -> None:
    async with _session(stage, "a conversation") as (connection, session_id):
        for turn in stage.options.turns:
            asked = connection.services.asked
            await _play(stage, connection, session_id, turn)
            if connection.services.asked > asked and stage.knowledge.permission_prompt is None:
                stage.knowledge.permission_prompt = turn.prompt


async def _play(stage: Stage, connection: ProbeConnection, session_id: str, turn: ScriptTurn) -> None:
    connection.services.permission = "hold" if turn.cancel == "permission" else turn.permission
    call = connection.prompt(session_id, turn.prompt)
    if turn.cancel == "update":
        await _cancel_when_under_way(connection, session_id, call)
    elif turn.cancel == "permission":
        await _cancel_at_permission(connection, session_id, call)
    await connection.finish(call, stage.options.turn_timeout_s)
    await connection.listen()


async def _cancel_when_under_way(connection: ProbeConnection, session_id: str, call: PendingAnswer) -> None:
    await _under_way(connection, call)
    await _cancel(connection, session_id)


async def _under_way(connection: ProbeConnection, call: PendingAnswer) -> None:
    """Wait until an update shows work on a prompt that was just sent; updates about the session do not count."""
    before = len(connection.updates)

    def has_begun() -> bool:
        kinds = [part(each, "update").get("sessionUpdate") for each in connection.updates[before:]]
        return any(each in CONTENT for each in kinds) or bool(connection.services.held) or call.done()

    await connection.until(has_begun, BEGIN_S)


async def _cancel_at_permission(connection: ProbeConnection, session_id: str, call: PendingAnswer) -> None:
    await connection.until(lambda: bool(connection.services.held) or call.done(), BEGIN_S)
    await _cancel(connection, session_id)


async def _cancel(connection: ProbeConnection, session_id: str) -> None:
    """Cancel as a client must, and send a request behind it, whose answer proves that the agent has read the cancel."""
    connection.notify("session/cancel", {"sessionId": session_id})
    connection.services.settle(connection)
    connection.services.permission = "reject"
    connection.begin(f"_{INVENTED}heard", {"sessionId": session_id})


async def reject(stage: Stage) -> None:
    """Deny the permissions that the agent asks for."""
    await _once(stage, "permission denied", ScriptTurn(await find_permission_prompt(stage), permission="reject"))


async def cancel(stage: Stage) -> None:
    """Cancel a turn that is under way."""
    await _once(stage, "cancelled", ScriptTurn(await find_permission_prompt(stage), cancel="update"))


async def cancel_permission(stage: Stage) -> None:
    """Cancel a turn that waits for a permission."""
    text = await find_permission_prompt(stage)
    if stage.knowledge.permission_prompt is not None:
        await _once(stage, "cancelled while it asks", ScriptTurn(text, cancel="permission"))


async def _once(stage: Stage, name: str, turn: ScriptTurn) -> None:
    if not stage.options.prompt:
        return
    async with _session(stage, name) as (connection, session_id):
        await _play(stage, connection, session_id, turn)
        # Damage of a cancel or a denial shows in the next turn.
        await _play(stage, connection, session_id, ScriptTurn(turn.prompt, permission="reject"))


async def find_permission_prompt(stage: Stage) -> str:
    """Return a prompt that is known to lead to a permission request, if the conversation has found one."""
    if stage.options.prompt:
        await stage.knowledge.has_conversed.wait()
    return stage.knowledge.permission_prompt or stage.options.turns[0].prompt


async def cancel_request(stage: Stage) -> None:
    """Cancel a prompt by its id."""
    if not stage.options.prompt:
        return
    async with _session(stage, "cancelled by its id") as (connection, session_id):
        connection.services.permission = "hold"
        call = connection.prompt(session_id, await find_permission_prompt(stage))
        request_id = connection.last_id
        await _under_way(connection, call)
        connection.notify("$/cancel_request", {"requestId": request_id})
        connection.services.settle(connection)
        connection.services.permission = "reject"  # it may not heed the cancel, and ask only now
        await connection.finish(call, stage.options.turn_timeout_s)
        await connection.listen()


async def close(stage: Stage) -> None:
    """Close a session whose turn is running, and prompt it once more."""
    if not stage.options.prompt or not stage.offers("sessionCapabilities.close"):
        return
    async with _session(stage, "closed while it works") as (connection, session_id):
        text = await find_permission_prompt(stage)
        connection.services.permission = "hold"
        call = connection.prompt(session_id, text)
        await _under_way(connection, call)
        closing = connection.begin("session/close", {"sessionId": session_id})
        connection.services.settle(connection)
        connection.services.permission = "reject"
        await connection.finish(closing, stage.options.turn_timeout_s)
        await connection.finish(call, stage.options.turn_timeout_s)
        await connection.listen()
        await connection.finish(connection.prompt(session_id, text), stage.options.turn_timeout_s)


async def two_prompts(stage: Stage) -> None:
    """Send a prompt while another one runs."""
    if not stage.options.prompt:
        return
    async with _session(stage, "two prompts at once") as (connection, session_id):
        text = await find_permission_prompt(stage)
        connection.services.permission = "hold"
        first = connection.prompt(session_id, text)
        await _under_way(connection, first)
        second = connection.prompt(session_id, text)
        # The second may be refused, may wait for its turn, or may be taken into the first: it only has to be answered.
        await connection.until(second.done, LATE_S)
        await _cancel(connection, session_id)
        await connection.finish(first, stage.options.turn_timeout_s)
        await connection.finish(second, stage.options.turn_timeout_s)


async def two_sessions(stage: Stage) -> None:
    """Let two sessions of one process work at the same time, and cancel one of them."""
    if not stage.options.prompt:
        return
    async with stage.joined("two sessions at once") as connection:
        one = await stage.new_session(connection, "one")
        other = await stage.new_session(connection, "other")
        if one is None or other is None:
            return
        text = await find_permission_prompt(stage)
        connection.services.permission = "reject"
        calls = [connection.prompt(one, text), connection.prompt(other, text)]
        connection.notify("session/cancel", {"sessionId": one})
        for call in calls:
            await connection.finish(call, stage.options.turn_timeout_s)
        for session_id in (one, other):
            await stage.tidy(connection, session_id)


async def bare_client(stage: Stage) -> None:
    """Converse as a client that offers nothing, to see that nothing is asked of it."""
    if not stage.options.prompt:
        return
    text = await find_permission_prompt(stage)
    async with _session(stage, "a client that offers nothing", without=EVERYTHING) as (connection, session_id):
        await _play(stage, connection, session_id, ScriptTurn(text))


PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\x0bIDATx\xdac\xf8\x0f\x04\x00\t\xfb\x03\xfdh\xfa\x1c\xcc\x00\x00\x00\x00IEND\xaeB`\x82"
)
"""A picture of one pixel."""
SILENCE = (
    b"RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00"
    b"data\x02\x00\x00\x00\x00\x00"
)
"""A sound of one sample."""


async def contents(stage: Stage) -> None:
    """Prompt with a link and each kind of content that the agent takes: all at once, and if that fails, one by one."""
    if not stage.options.prompt:
        return
    async with stage.joined("more than text") as connection:
        session_id = await stage.new_session(connection, "contents")
        if session_id is None:
            return
        blocks = make_blocks(stage, stage.directory("contents") / "notes.txt")
        reply = await _prompt(stage, connection, session_id, blocks)
        if reply is not None and not reply.ok and len(blocks) > 1:
            for block in blocks:
                await _prompt(stage, connection, session_id, [block])
        await stage.tidy(connection, session_id)


async def _prompt(
    stage: Stage, connection: ProbeConnection, session_id: str, blocks: list[Object]
) -> AgentAnswer | None:
    text: Object = {"type": "text", "text": stage.options.turns[0].prompt}
    params: Object = {"sessionId": session_id, "prompt": [text, *blocks]}
    return await connection.request("session/prompt", params, stage.options.turn_timeout_s)


def make_blocks(stage: Stage, path: Path) -> list[Object]:
    """Return a link, which every agent takes, and one of each kind that is advertised."""
    name = {"uri": path.as_uri(), "mimeType": "text/plain"}
    guarded: dict[str, Object] = {
        "image": {"type": "image", "data": _encode(PIXEL), "mimeType": "image/png"},
        "audio": {"type": "audio", "data": _encode(SILENCE), "mimeType": "audio/wav"},
        "embeddedContext": {"type": "resource", "resource": {**name, "text": path.read_text()}},
    }
    advertised = [block for kind, block in guarded.items() if stage.offers(f"promptCapabilities.{kind}")]
    return [{"type": "resource_link", "name": path.name, **name}, *advertised]


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
