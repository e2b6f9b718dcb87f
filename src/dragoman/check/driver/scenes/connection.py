"""Scenes about the connection: its first messages, invalid or very long lines, and its end."""

import time

from dragoman.check.driver.scenes.turns import BEGIN_S, find_permission_prompt
from dragoman.check.driver.stage import Stage, is_agreed
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object

FUTURE_VERSION = 65_535
"""The highest version that the schema allows. No agent speaks it."""


async def initialize(stage: Stage) -> None:
    """Wait for the agent to answer initialize, and call methods that do not exist."""
    options = stage.options
    began_s = time.monotonic()
    async with stage.open("greeting") as connection:
        reply = await stage.initialize(connection)
        stage.knowledge.start_s = time.monotonic() - began_s
        stage.knowledge.has_answered = reply is not None and reply.ok
        stage.knowledge.refusal = None if reply is None else reply.code
        if reply is None or not is_agreed(reply, stage.dialect.version):
            return
        stage.knowledge.greeting = reply.fields
        await connection.request(f"_{INVENTED}method", {"any": None}, options.timeout_s)
        if connection.is_silent and not stage.has_process:  # its streams may not work, which scenes/http.py judges
            return
        await connection.request(f"{INVENTED}method", {}, options.timeout_s, request_id="a string, as an id may be")
        connection.notify(f"_{INVENTED}method", {"any": None})
        connection.notify(f"{INVENTED}notification", {})
        connection.notify(f"$/{INVENTED}notification", {})
        await connection.request(f"_{INVENTED}again", {}, options.timeout_s)
        if reply.fields.get("authMethods"):
            await connection.request(stage.dialect.login, {"methodId": f"{INVENTED}login"}, options.timeout_s)


async def unknown_version(stage: Stage) -> None:
    """Request a version that does not exist."""
    async with stage.open("unknown version") as connection:
        if stage.dialect.version == 1:
            params: Object = {"protocolVersion": FUTURE_VERSION, "clientCapabilities": {}}
        else:
            params = stage.initialize_params(FUTURE_VERSION, {})
        await connection.request("initialize", params, stage.options.start_timeout_s)


async def log_in(stage: Stage) -> None:
    """Initialize with a capability that does not exist, and open a session before and after the login."""
    async with stage.open("login") as connection:
        reply = await stage.initialize(connection, {f"{INVENTED}capability": {"level": 3}})
        if reply is None or not is_agreed(reply, stage.dialect.version):
            return
        session_ids = [await stage.new_session(connection, "before-login")]
        if stage.options.auth is not None:
            await stage.authenticate(connection)
            session_ids.append(await stage.new_session(connection, "after-login"))
        for session_id in filter(None, session_ids):
            await stage.clean_up(connection, session_id)


async def bad_initialize(stage: Stage) -> None:
    """Initialize with wrong parameters until the agent accepts them."""
    wrong: tuple[Object, ...] = ({"protocolVersion": "1"}, {})
    async with stage.open("hello with wrong parameters") as connection:
        for params in wrong:
            reply = await connection.request("initialize", params, stage.options.start_timeout_s)
            if reply is None or reply.ok:
                return


# No line contains invalid UTF-8. A client must not send that, and many agents decode strictly.
STRANGE = (
    b"this is not JSON",
    b'{"jsonrpc":"2.0","id":77,"method":',
    b"42",
    b"[]",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":987654,"result":{}}',
)

LONG_BYTES = 1_000_000


async def strange_lines(stage: Stage) -> None:
    """Send lines that are not messages, each followed by a valid request. The first request has no line before it."""
    async with stage.joined("strange lines") as connection:
        for line in (b"", *STRANGE):
            if line:
                connection.send(line)
            if await connection.request(f"_{INVENTED}method", {}, stage.options.timeout_s) is None:
                return


async def long_line(stage: Stage) -> None:
    """Send a message of one megabyte."""
    params: Object = {"cwd": str(stage.directory("long")), "mcpServers": []}
    async with stage.joined("a long line") as connection:
        # The same message is first sent short. An agent that does not answer it is not blamed for the length.
        for meta in ("short", "x" * LONG_BYTES):
            sent = {**params, "_meta": {"dragoman.check": meta}}
            reply = await connection.request("session/new", sent, stage.options.turn_timeout_s)
            if reply is None:
                return
            session_id = reply.fields.get("sessionId")
            if isinstance(session_id, str):
                await stage.clean_up(connection, session_id)


async def close_input(stage: Stage) -> None:
    """Leave as an editor does: close its stdin, and check that it exits."""
    if not stage.has_process:
        return
    async with stage.joined("stdin closed") as connection:
        await stage.new_session(connection, "closed")
        if await connection.leave(stage.options.exit_timeout_s):
            await connection.record_orphans()


async def close_in_mid_line(stage: Stage) -> None:
    """Exit as an editor does: in the middle of a message, while the agent waits for a permission if it requests one."""
    if not stage.has_process:
        return
    prompt = await find_permission_prompt(stage)
    async with stage.joined("stdin closed in the middle of a line") as connection:
        session_id = await stage.new_session(connection, "cut-off") if stage.knowledge.permission_prompt else None
        if session_id is not None:
            connection.services.permission = "hold"
            call = connection.prompt(session_id, prompt)
            await connection.wait_until(lambda: bool(connection.services.held) or call.done(), BEGIN_S)
        connection.send_part(b'{"jsonrpc":"2.0","id":5,"method":"session/n')
        await connection.leave(stage.options.exit_timeout_s)
