"""Scenes about prompts: answered, cancelled, with a rejected permission, concurrent, and with other content."""

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.check.driver.client_services import ALL_SERVICES
from dragoman.check.driver.connection import LATE_S, AgentAnswer, AgentGoneError, PendingAnswer, ProbeConnection
from dragoman.check.driver.options import ScriptTurn
from dragoman.check.driver.stage import Stage
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, part
from dragoman.check.judge.session_setup import CONTENT

BEGIN_S = 10.0
"""Time for a turn to show that it has started."""


@asynccontextmanager
async def _session(
    stage: Stage, name: str, *, without: frozenset[str] | None = None
) -> AsyncGenerator[tuple[ProbeConnection, str]]:
    """Open a session in its own conversation, and delete it afterwards. Raises AgentGoneError if there is none."""
    if stage.knowledge.never_idles.is_set():
        raise AgentGoneError
    async with stage.joined(name) if without is None else stage.greeted(name, without=without) as connection:
        session_id = await stage.new_session(connection, name.replace(" ", "-"))
        if session_id is None:
            raise AgentGoneError
        yield connection, session_id
        await stage.clean_up(connection, session_id)


async def converse(stage: Stage) -> None:
    """Send the prompts of the script in one session."""
    try:
        if stage.options.prompt:
            await _converse(stage)
    finally:
        stage.knowledge.has_conversed.set()


async def _converse(stage: Stage) -> None:
    async with _session(stage, "a conversation") as (connection, session_id):
        for turn in stage.options.turns:
            asked = connection.services.permission_count
            await _play(stage, connection, session_id, turn)
            if connection.services.permission_count > asked and stage.knowledge.permission_prompt is None:
                stage.knowledge.permission_prompt = turn.prompt


async def _play(stage: Stage, connection: ProbeConnection, session_id: str, turn: ScriptTurn) -> None:
    connection.services.permission = "hold" if turn.cancel == "permission" else turn.permission
    call = connection.prompt(session_id, turn.prompt)
    if turn.cancel == "update":
        await _cancel_when_under_way(connection, session_id, call)
    elif turn.cancel == "permission":
        await _cancel_at_permission(connection, session_id, call)
    if await finish(stage, connection, call) is None and turn.cancel is None:
        await _cut(stage, connection, session_id, call)
    await connection.listen()


async def finish(stage: Stage, connection: ProbeConnection, call: PendingAnswer) -> AgentAnswer | None:
    """Wait for the answer to a prompt. On a timeout record an event and return None. Raises AgentGoneError."""
    return await stage.await_turn(connection.finish(call, stage.options.turn_timeout_s))


async def _cut(stage: Stage, connection: ProbeConnection, session_id: str, call: PendingAnswer) -> None:
    """Cancel a turn that takes too long. An agent that is only slow then ends it. Raises AgentGoneError."""
    await _cancel(connection, session_id)
    if await connection.wait_until(call.done, stage.options.timeout_s) or connection.ended:
        return
    connection.record_event(f"waited {stage.options.timeout_s:g}")
    stage.knowledge.never_idles.set()
    raise AgentGoneError


async def _cancel_when_under_way(connection: ProbeConnection, session_id: str, call: PendingAnswer) -> None:
    await _wait_for_update(connection, call)
    await _cancel(connection, session_id)


async def _wait_for_update(connection: ProbeConnection, call: PendingAnswer) -> None:
    """Wait until an update shows work on the prompt. Updates about the session do not count."""
    before = len(connection.updates)

    def has_begun() -> bool:
        kinds = [part(each, "update").get("sessionUpdate") for each in connection.updates[before:]]
        return any(each in CONTENT for each in kinds) or bool(connection.services.held) or call.done()

    await connection.wait_until(has_begun, BEGIN_S)


async def _cancel_at_permission(connection: ProbeConnection, session_id: str, call: PendingAnswer) -> None:
    await connection.wait_until(lambda: bool(connection.services.held) or call.done(), BEGIN_S)
    await _cancel(connection, session_id)


async def _cancel(connection: ProbeConnection, session_id: str) -> None:
    """Cancel as a client must. Then send a request whose answer proves that the agent has read the cancel."""
    connection.notify("session/cancel", {"sessionId": session_id})
    connection.services.cancel_held(connection)
    connection.services.permission = "reject"
    connection.begin(f"_{INVENTED}heard", {"sessionId": session_id})


async def reject(stage: Stage) -> None:
    """Reject the permissions that the agent requests."""
    await _converse_once(
        stage, "permission denied", ScriptTurn(await find_permission_prompt(stage), permission="reject")
    )


async def cancel(stage: Stage) -> None:
    """Cancel a running turn."""
    await _converse_once(stage, "cancelled", ScriptTurn(await find_permission_prompt(stage), cancel="update"))


async def cancel_permission(stage: Stage) -> None:
    """Cancel a turn that waits for a permission."""
    text = await find_permission_prompt(stage)
    if stage.knowledge.permission_prompt is not None:
        await _converse_once(stage, "cancelled while it asks", ScriptTurn(text, cancel="permission"))


async def _converse_once(stage: Stage, name: str, turn: ScriptTurn) -> None:
    if not stage.options.prompt:
        return
    async with _session(stage, name) as (connection, session_id):
        await _play(stage, connection, session_id, turn)
        if turn.cancel == "update":
            await cancel_nothing(stage, connection, session_id)
        # Damage from a cancel or a rejection shows in the next turn.
        await _play(stage, connection, session_id, ScriptTurn(turn.prompt, permission="reject"))


async def cancel_nothing(stage: Stage, connection: ProbeConnection, session_id: str) -> None:
    """Cancel in an idle session, which must not affect the next prompt."""
    connection.notify("session/cancel", {"sessionId": session_id})
    await connection.request(f"_{INVENTED}heard", {"sessionId": session_id}, stage.options.timeout_s)


async def find_permission_prompt(stage: Stage) -> str:
    """Return a prompt that leads to a permission request, if the conversation has found one."""
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
        await _wait_for_update(connection, call)
        connection.notify("$/cancel_request", {"requestId": request_id})
        connection.services.cancel_held(connection)
        connection.services.permission = "reject"  # the agent may ignore the cancel, and request a permission only now
        await finish(stage, connection, call)
        await connection.listen()


async def close(stage: Stage) -> None:
    """Close a session while its turn is running, and prompt it again."""
    if not stage.options.prompt or not stage.offers("sessionCapabilities.close"):
        return
    async with _session(stage, "closed while it works") as (connection, session_id):
        text = await find_permission_prompt(stage)
        connection.services.permission = "hold"
        call = connection.prompt(session_id, text)
        await _wait_for_update(connection, call)
        closing = connection.begin("session/close", {"sessionId": session_id})
        connection.services.cancel_held(connection)
        connection.services.permission = "reject"
        await connection.finish(closing, stage.options.turn_timeout_s)
        await finish(stage, connection, call)
        await connection.listen()
        await finish(stage, connection, connection.prompt(session_id, text))


async def two_prompts(stage: Stage) -> None:
    """Send a prompt while another one runs."""
    if not stage.options.prompt:
        return
    async with _session(stage, "two prompts at once") as (connection, session_id):
        text = await find_permission_prompt(stage)
        connection.services.permission = "hold"
        first = connection.prompt(session_id, text)
        await _wait_for_update(connection, first)
        second = connection.prompt(session_id, text)
        # The second prompt may be refused, may wait, or may join the first. It only has to be answered.
        await connection.wait_until(second.done, LATE_S)
        await _cancel(connection, session_id)
        await finish(stage, connection, first)
        await finish(stage, connection, second)


async def two_sessions(stage: Stage) -> None:
    """Run two sessions of one process concurrently, and cancel one of them."""
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
            await finish(stage, connection, call)
        for session_id in (one, other):
            await stage.clean_up(connection, session_id)


async def converse_without_capabilities(stage: Stage) -> None:
    """Converse as a client without capabilities, to check that nothing is requested from it."""
    if not stage.options.prompt:
        return
    text = await find_permission_prompt(stage)
    async with _session(stage, "a client that offers nothing", without=ALL_SERVICES) as (connection, session_id):
        await _play(stage, connection, session_id, ScriptTurn(text))


PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\x0bIDATx\xdac\xf8\x0f\x04\x00\t\xfb\x03\xfdh\xfa\x1c\xcc\x00\x00\x00\x00IEND\xaeB`\x82"
)
"""An image of one pixel."""
SILENCE = (
    b"RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00"
    b"data\x02\x00\x00\x00\x00\x00"
)
"""A sound of one sample."""


async def contents(stage: Stage) -> None:
    """Prompt with a link and each supported content type: all at once, and if that fails, one by one."""
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
        await stage.clean_up(connection, session_id)


async def _prompt(
    stage: Stage, connection: ProbeConnection, session_id: str, blocks: list[Object]
) -> AgentAnswer | None:
    text: Object = {"type": "text", "text": stage.options.turns[0].prompt}
    params: Object = {"sessionId": session_id, "prompt": [text, *blocks]}
    return await stage.await_turn(connection.request("session/prompt", params, stage.options.turn_timeout_s))


def make_blocks(stage: Stage, path: Path) -> list[Object]:
    """Return a link, which every agent supports, and a block of each advertised type."""
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
