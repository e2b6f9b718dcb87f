"""Scenes about sessions: valid and invalid requests, settings, lists, and loading sessions again."""

from typing import Any

from dragoman.check.driver.connection import AgentAnswer, ProbeConnection
from dragoman.check.driver.scenes.turns import finish
from dragoman.check.driver.stage import Stage
from dragoman.check.judge import INVENTED
from dragoman.check.judge.message import Object, part, parts

NOBODY = f"{INVENTED}session"


async def bad_parameters(stage: Stage) -> None:
    """Open sessions with wrong parameters."""
    good: Object = {"cwd": str(stage.directory("bad")), "mcpServers": []}
    timeout_s = stage.options.timeout_s
    bad: list[Object] = [
        {"mcpServers": []},
        {"cwd": good["cwd"]},
        {**good, "cwd": 7},
        {**good, "mcpServers": {}},
        {**good, "mcpServers": [{"name": "no command"}]},
    ]
    lost = [{**good, "cwd": cwd} for cwd in ("relative/directory", "~", str(stage.root / "not there"))]
    async with stage.joined("bad parameters") as connection:
        for params in bad:
            await connection.request("session/new", params, timeout_s)
        for params in lost:  # an agent may accept these, and then needs more time
            await connection.request("session/new", params, stage.options.turn_timeout_s)
        await send_bad_prompts(stage, connection)


async def send_bad_prompts(stage: Stage, connection: ProbeConnection) -> None:
    """Prompt a new session without a prompt, and with a prompt that is not a list."""
    timeout_s = stage.options.timeout_s
    session_id = await stage.new_session(connection, "bad")
    if session_id is not None:
        await connection.request("session/prompt", {"sessionId": session_id}, timeout_s)
        await connection.request("session/prompt", {"sessionId": session_id, "prompt": "text"}, timeout_s)
        await stage.clean_up(connection, session_id)


async def options(stage: Stage) -> None:
    """Set every mode and option that a session has, and some that it does not have."""
    async with stage.joined("modes and options") as connection:
        params: Object = {"cwd": str(stage.directory("options")), "mcpServers": []}
        reply = await connection.request("session/new", params, stage.options.turn_timeout_s)
        session_id = None if reply is None else reply.fields.get("sessionId")
        if reply is None or not isinstance(session_id, str):
            return
        await _set_modes(stage, connection, session_id, part(reply.fields, "modes"))
        await _set_options(stage, connection, session_id, parts(reply.fields, "configOptions"))
        await stage.clean_up(connection, session_id)


async def _set_modes(stage: Stage, connection: ProbeConnection, session_id: str, modes: Object) -> None:
    ids = [each.get("id") for each in parts(modes, "availableModes")]
    for mode_id in [*ids, modes.get("currentModeId"), f"{INVENTED}mode"]:
        if modes and isinstance(mode_id, str):
            params = {"sessionId": session_id, "modeId": mode_id}
            await connection.request("session/set_mode", params, stage.options.timeout_s)


async def _set_options(stage: Stage, connection: ProbeConnection, session_id: str, options: list[Object]) -> None:
    timeout_s = stage.options.timeout_s
    for option in options:
        params: Object = {"sessionId": session_id, "configId": option.get("id")}
        if option.get("type") == "boolean":
            await connection.request(
                "session/set_config_option", {**params, "type": "boolean", "value": True}, timeout_s
            )
        else:
            # Set another value and then the first one, because an option may change the cost or the rights of the
            # agent.
            for value in (*find_option_values(option)[:2], option.get("currentValue"), f"{INVENTED}value"):
                await connection.request("session/set_config_option", {**params, "value": value}, timeout_s)
    if options:
        params = {"sessionId": session_id, "configId": f"{INVENTED}option", "value": "any"}
        await connection.request("session/set_config_option", params, timeout_s)


def find_option_values(option: Object) -> list[Any]:
    """Return the values of an option, including those in groups."""
    found: list[Any] = []
    for each in parts(option, "options"):
        members = parts(each, "options") if "options" in each else [each]
        found += [member.get("value") for member in members]
    return found


async def unknown_sessions(stage: Stage) -> None:
    """Use a session that does not exist."""
    timeout_s = stage.options.timeout_s
    place: Object = {"sessionId": NOBODY, "cwd": str(stage.directory("nobody")), "mcpServers": []}
    async with stage.joined("unknown sessions") as connection:
        connection.notify("session/cancel", {"sessionId": NOBODY})
        await connection.request(
            "session/prompt", {"sessionId": NOBODY, "prompt": [{"type": "text", "text": "Hello?"}]}, timeout_s
        )
        await connection.request("session/set_mode", {"sessionId": NOBODY, "modeId": "any"}, timeout_s)
        for method, capability, params in (
            ("session/load", "loadSession", place),
            ("session/resume", "sessionCapabilities.resume", place),
            ("session/close", "sessionCapabilities.close", {"sessionId": NOBODY}),
            ("session/delete", "sessionCapabilities.delete", {"sessionId": NOBODY}),
        ):
            if stage.offers(capability):
                await connection.request(method, params, timeout_s)


async def unadvertised(stage: Stage) -> None:
    """Call methods that the agent has not advertised."""
    async with stage.joined("not advertised") as connection:
        session_id = await stage.new_session(connection, "not-advertised")
        known: Object = {"sessionId": session_id or NOBODY}
        place: Object = {**known, "cwd": str(stage.directory("not-advertised")), "mcpServers": []}
        for method, capability, params in (
            ("session/load", "loadSession", place),
            ("session/resume", "sessionCapabilities.resume", place),
            ("session/list", "sessionCapabilities.list", {}),
            ("session/close", "sessionCapabilities.close", known),
            ("session/delete", "sessionCapabilities.delete", known),
            ("logout", "auth.logout", {}),
        ):
            if method in stage.dialect.methods and not stage.offers(capability):
                await connection.request(method, params, stage.options.timeout_s)
        if session_id is not None:
            await stage.clean_up(connection, session_id)


async def lists(stage: Stage) -> None:
    """List all sessions, the sessions of one directory, the next pages, and a page that does not exist."""
    if not stage.offers("sessionCapabilities.list"):
        return
    timeout_s = stage.options.timeout_s
    async with stage.joined("lists") as connection:
        session_id = await stage.new_session(connection, "listed")
        reply = await connection.request("session/list", {}, timeout_s)
        cursor = None if reply is None else reply.fields.get("nextCursor")
        if isinstance(cursor, str):
            await connection.request("session/list", {"cursor": cursor}, timeout_s)
        await connection.request("session/list", {"cwd": str(stage.directory("listed"))}, timeout_s)
        await connection.request("session/list", {"cwd": str(stage.directory("never-used"))}, timeout_s)
        await connection.request("session/list", {"cursor": f"{INVENTED}cursor"}, timeout_s)
        if session_id is not None:
            await stage.clean_up(connection, session_id)


NAME = "comes-back"
"""The directory of the session that is opened again."""
LOAD, RESUME, CLOSE = "session/load", "session/resume", "session/close"
CAPABILITIES = {LOAD: "loadSession", RESUME: "sessionCapabilities.resume", CLOSE: "sessionCapabilities.close"}


async def reopen_sessions(stage: Stage) -> None:
    """Converse, resume, load and close a session. End the process, load and resume it in new ones, and delete it."""
    if not stage.options.prompt:
        return
    async with stage.greeted("before the end") as connection:
        session_id = await stage.new_session(connection, NAME)
        if session_id is None:
            return
        for turn in stage.options.turns[:2]:
            connection.services.permission = turn.permission
            await finish(stage, connection, connection.prompt(session_id, turn.prompt))
        await _list(stage, connection)
        await _list(stage, connection, cwd=str(stage.directory(NAME)))
        await _reopen(stage, connection, session_id)
        if stage.has_process:
            await connection.leave(stage.options.exit_timeout_s)
    await _load(stage, session_id)
    await _resume(stage, session_id)


async def _reopen(stage: Stage, connection: ProbeConnection, session_id: str) -> None:
    """Resume and load a session while it is open, because some agents keep sessions in memory."""
    # Resume first, so that late updates of a load are not mistaken for updates of the resume.
    await _open(stage, connection, session_id, RESUME)
    await _open(stage, connection, session_id, LOAD)
    await connection.listen()
    await _close(stage, connection, session_id)


async def _close(stage: Stage, connection: ProbeConnection, session_id: str) -> None:
    """Close a session, and open it again with the first method that the agent offers."""
    opener = next((each for each in (LOAD, RESUME) if stage.offers(CAPABILITIES[each])), None)
    if opener is None or not stage.offers(CAPABILITIES[CLOSE]):
        return
    await connection.request(CLOSE, {"sessionId": session_id}, stage.options.timeout_s)
    await _list(stage, connection)
    await _open(stage, connection, session_id, opener)


async def _load(stage: Stage, session_id: str) -> None:
    if not stage.offers(CAPABILITIES[LOAD]):
        return
    async with stage.greeted("loaded in another process") as connection:
        reply = await _open(stage, connection, session_id, LOAD)
        if reply is not None and reply.ok:
            await connection.listen()
            await _close(stage, connection, session_id)


async def _resume(stage: Stage, session_id: str) -> None:
    async with stage.greeted("resumed in another process") as connection:
        await _open(stage, connection, session_id, RESUME)
        await stage.clean_up(connection, session_id)
        if stage.offers("sessionCapabilities.delete"):
            await _list(stage, connection)
            await connection.request("session/delete", {"sessionId": session_id}, stage.options.timeout_s)


async def _open(stage: Stage, connection: ProbeConnection, session_id: str, method: str) -> AgentAnswer | None:
    if not stage.offers(CAPABILITIES[method]):
        return None
    before = len(connection.updates)
    place: Object = {"sessionId": session_id, "cwd": str(stage.directory(NAME)), "mcpServers": []}
    reply = await connection.request(method, place, stage.options.turn_timeout_s)
    if method == LOAD and not any("content" in part(each, "update") for each in connection.updates[before:]):
        await connection.listen()  # the replay may be late
    return reply


async def _list(stage: Stage, connection: ProbeConnection, **params: str) -> None:
    if stage.offers("sessionCapabilities.list"):
        await connection.request("session/list", params, stage.options.timeout_s)
