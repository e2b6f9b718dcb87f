"""Version 2 scenes about versions and sessions: valid and invalid requests, options, and resuming sessions."""

from dragoman.check.driver.client_services import ALL_SERVICES
from dragoman.check.driver.connection import AgentAnswer, ProbeConnection
from dragoman.check.driver.scenes.sessions import NAME, NOBODY, find_option_values, send_bad_prompts
from dragoman.check.driver.scenes.work import run
from dragoman.check.driver.stage import Stage
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, part, parts

FROM_START: Object = {"replayFrom": {"type": "start"}}


async def no_version(stage: Stage) -> None:
    """Request a version below all existing ones."""
    async with stage.open("no version") as connection:
        await connection.request("initialize", stage.initialize_params(0, {}), stage.options.start_timeout_s)


async def bad_parameters(stage: Stage) -> None:
    """Open sessions with wrong parameters, and with only the required ones."""
    good: Object = {"cwd": str(stage.directory("bad"))}
    timeout_s = stage.options.timeout_s
    bad: list[Object] = [
        {},
        {**good, "cwd": 7},
        {**good, "mcpServers": {}},
        {**good, "mcpServers": [{"type": "stdio", "name": "no command"}]},
        {**good, "mcpServers": [{"type": f"_{INVENTED}transport", "name": "unknown"}]},
    ]
    async with stage.joined("bad parameters") as connection:
        for params in bad:
            await connection.request("session/new", params, timeout_s)
        for params in ({**good, "cwd": "relative/directory"}, good):
            reply = await connection.request("session/new", params, stage.options.turn_timeout_s)
            if reply is not None and isinstance(reply.fields.get("sessionId"), str):
                await stage.clean_up(connection, reply.fields["sessionId"])
        await send_bad_prompts(stage, connection)


async def options(stage: Stage) -> None:
    """Set every option that a session has, and some that it does not have."""
    timeout_s = stage.options.timeout_s
    async with stage.joined("options") as connection:
        params: Object = {"cwd": str(stage.directory("options"))}
        reply = await connection.request("session/new", params, stage.options.turn_timeout_s)
        session_id = None if reply is None else reply.fields.get("sessionId")
        if reply is None or not isinstance(session_id, str):
            return
        offered = parts(reply.fields, "configOptions")
        for option in offered:
            request: Object = {"sessionId": session_id, "configId": option.get("configId")}
            kind = "boolean" if option.get("type") == "boolean" else "id"
            values = [True] if kind == "boolean" else [*find_option_values(option)[:2], option.get("currentValue")]
            for value in [*values, *([] if kind == "boolean" else [f"{INVENTED}value"])]:
                await connection.request(
                    "session/set_config_option", {**request, "type": kind, "value": value}, timeout_s
                )
            # Send the type of the other kind of option, then two unknown types. The second is reserved for a later
            # version.
            other: Object = {"type": "id", "value": "true"} if kind == "boolean" else {"type": "boolean", "value": True}
            unknown = ({"type": f"{mark}{INVENTED}type", "value": option.get("currentValue")} for mark in ("_", ""))
            for strange in (other, *unknown):
                await connection.request("session/set_config_option", {**request, **strange}, timeout_s)
            for each in [each for each in offered if each is not option and each.get("type") != "boolean"][:1]:
                # The answer shows whether a refused request has changed anything.
                kept: Object = {"type": "id", "configId": each.get("configId"), "value": each.get("currentValue")}
                await connection.request("session/set_config_option", {**request, **kept}, timeout_s)
        if offered:
            request = {"sessionId": session_id, "configId": f"{INVENTED}option", "type": "id", "value": "any"}
            await connection.request("session/set_config_option", request, timeout_s)
        await stage.clean_up(connection, session_id)


async def unknown_sessions(stage: Stage) -> None:
    """Use a session that does not exist."""
    timeout_s = stage.options.timeout_s
    async with stage.joined("unknown sessions") as connection:
        connection.notify("session/cancel", {"sessionId": NOBODY})
        prompt = [{"type": "text", "text": "Hello?"}]
        await connection.request("session/prompt", {"sessionId": NOBODY, "prompt": prompt}, timeout_s)
        place: Object = {"sessionId": NOBODY, "cwd": str(stage.directory("nobody"))}
        await connection.request("session/resume", place, timeout_s)
        await connection.request("session/close", {"sessionId": NOBODY}, timeout_s)
        if stage.offers("sessionCapabilities.delete"):
            await connection.request("session/delete", {"sessionId": NOBODY}, timeout_s)


async def reopen_sessions(stage: Stage) -> None:
    """Converse without capabilities, resume and close. End the process, resume in new ones, and delete."""
    if not stage.options.prompt:
        return
    async with stage.greeted("before the end", without=ALL_SERVICES) as connection:
        session_id = await stage.new_session(connection, NAME)
        if session_id is None:
            return
        for turn in stage.options.turns[:2]:
            connection.services.permission = turn.permission
            await run(stage, connection, session_id, turn.prompt)
        await connection.request("session/list", {}, stage.options.timeout_s)
        await connection.request("session/list", {"cwd": str(stage.directory(NAME))}, stage.options.timeout_s)
        # Resume without a replay first, so that late updates of a replay are not mistaken for updates of the other
        # resume.
        await _resume(stage, connection, session_id)
        await _resume(stage, connection, session_id, FROM_START)
        await _resume(stage, connection, session_id, {"replayFrom": {"type": f"_{INVENTED}cursor"}})
        await connection.listen()
        await _close(stage, connection, session_id)
        if stage.has_process:
            await connection.leave(stage.options.exit_timeout_s)
    async with stage.greeted("replayed in another process") as connection:
        reply = await _resume(stage, connection, session_id, FROM_START)
        if reply is not None and reply.ok:
            await connection.listen()
            await _close(stage, connection, session_id)
    async with stage.greeted("resumed in another process") as connection:
        await _resume(stage, connection, session_id)
        await stage.clean_up(connection, session_id)
        if stage.offers("sessionCapabilities.delete"):
            await connection.request("session/list", {}, stage.options.timeout_s)
            await connection.request("session/delete", {"sessionId": session_id}, stage.options.timeout_s)


async def _close(stage: Stage, connection: ProbeConnection, session_id: str) -> None:
    """Close a session, and resume it again."""
    await connection.request("session/close", {"sessionId": session_id}, stage.options.timeout_s)
    await connection.request("session/list", {}, stage.options.timeout_s)
    await _resume(stage, connection, session_id, FROM_START)


async def _resume(
    stage: Stage, connection: ProbeConnection, session_id: str, more: Object | None = None
) -> AgentAnswer | None:
    before = len(connection.updates)
    place: Object = {"sessionId": session_id, "cwd": str(stage.directory(NAME)), **(more or {})}
    reply = await connection.request("session/resume", place, stage.options.turn_timeout_s)
    if more == FROM_START and not any("messageId" in part(each, "update") for each in connection.updates[before:]):
        await connection.listen()  # the replay may be late
    return reply
