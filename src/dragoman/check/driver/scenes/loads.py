"""Sessions that come back, on the connection that has them and in another process."""

from dragoman.check.driver.desk import Object
from dragoman.check.driver.link import Link, Reply
from dragoman.check.driver.scenes.sessions import tidy
from dragoman.check.driver.scenes.turns import listen, prompt
from dragoman.check.driver.stage import Stage

NAME = "comes-back"
LOAD, RESUME, CLOSE = "session/load", "session/resume", "session/close"
CAPABILITIES = {LOAD: "loadSession", RESUME: "sessionCapabilities.resume", CLOSE: "sessionCapabilities.close"}


async def come_back(stage: Stage) -> None:
    """Converse, resume, load and close, end the process, load and resume in new ones, and delete."""
    if not stage.options.prompt:
        return
    async with stage.greeted("before the end") as link:
        session_id = await stage.new_session(link, NAME)
        if session_id is None:
            return
        for turn in stage.options.turns[:2]:
            link.desk.permission = turn.permission
            await link.finish(prompt(link, session_id, turn.prompt), stage.options.turn_timeout_s)
        await _list(stage, link)
        await _list(stage, link, cwd=str(stage.directory(NAME)))
        await _reopen(stage, link, session_id)
        if stage.has_process:
            await link.leave(stage.options.exit_timeout_s)
    await _load(stage, session_id)
    await _resume(stage, session_id)


async def _reopen(stage: Stage, link: Link, session_id: str) -> None:
    """Resume and load a session where it is open: there are agents that keep theirs in memory."""
    # In this order, for what a load brings too late is not to be taken for what a resume brings.
    await _open(stage, link, session_id, RESUME)
    await _open(stage, link, session_id, LOAD)
    await listen(link)
    await _close(stage, link, session_id)


async def _close(stage: Stage, link: Link, session_id: str) -> None:
    """Close a session, and open it once more in the first way that there is."""
    way = next((each for each in (LOAD, RESUME) if stage.offers(CAPABILITIES[each])), None)
    if way is None or not stage.offers(CAPABILITIES[CLOSE]):
        return
    await link.request(CLOSE, {"sessionId": session_id}, stage.options.timeout_s)
    await _list(stage, link)
    await _open(stage, link, session_id, way)


async def _load(stage: Stage, session_id: str) -> None:
    if not stage.offers(CAPABILITIES[LOAD]):
        return
    async with stage.greeted("loaded in another process") as link:
        reply = await _open(stage, link, session_id, LOAD)
        if reply is not None and reply.ok:
            await listen(link)
            await _close(stage, link, session_id)


async def _resume(stage: Stage, session_id: str) -> None:
    async with stage.greeted("resumed in another process") as link:
        await _open(stage, link, session_id, RESUME)
        await tidy(stage, link, session_id)
        if stage.offers("sessionCapabilities.delete"):
            await _list(stage, link)
            await link.request("session/delete", {"sessionId": session_id}, stage.options.timeout_s)


async def _open(stage: Stage, link: Link, session_id: str, method: str) -> Reply | None:
    if not stage.offers(CAPABILITIES[method]):
        return None
    place: Object = {"sessionId": session_id, "cwd": str(stage.directory(NAME)), "mcpServers": []}
    return await link.request(method, place, stage.options.turn_timeout_s)


async def _list(stage: Stage, link: Link, **params: str) -> None:
    if stage.offers("sessionCapabilities.list"):
        await link.request("session/list", params, stage.options.timeout_s)
