"""Sessions that come back in another process."""

from dragoman.check.driver.desk import Object
from dragoman.check.driver.link import Link
from dragoman.check.driver.scenes.sessions import tidy
from dragoman.check.driver.scenes.turns import listen, prompt
from dragoman.check.driver.stage import Stage

NAME = "comes-back"


async def come_back(stage: Stage) -> None:
    """Converse, end the process, load and resume in new ones, close, load once more, and delete."""
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
        if stage.has_process:
            await link.leave(stage.options.exit_timeout_s)
    await _load(stage, session_id)
    await _resume(stage, session_id)


def _place(stage: Stage, session_id: str) -> Object:
    return {"sessionId": session_id, "cwd": str(stage.directory(NAME)), "mcpServers": []}


async def _load(stage: Stage, session_id: str) -> None:
    if not stage.offers("loadSession"):
        return
    async with stage.greeted("loaded in another process") as link:
        await link.request("session/load", _place(stage, session_id), stage.options.turn_timeout_s)
        await listen(link)
        if stage.offers("sessionCapabilities.close"):
            await link.request("session/close", {"sessionId": session_id}, stage.options.timeout_s)
            await _list(stage, link)
            await link.request("session/load", _place(stage, session_id), stage.options.turn_timeout_s)
            await listen(link)


async def _resume(stage: Stage, session_id: str) -> None:
    async with stage.greeted("resumed in another process") as link:
        if stage.offers("sessionCapabilities.resume"):
            await link.request("session/resume", _place(stage, session_id), stage.options.turn_timeout_s)
            await listen(link)
        await tidy(stage, link, session_id)
        if stage.offers("sessionCapabilities.delete"):
            await _list(stage, link)
            await link.request("session/delete", {"sessionId": session_id}, stage.options.timeout_s)


async def _list(stage: Stage, link: Link, **params: str) -> None:
    if stage.offers("sessionCapabilities.list"):
        await link.request("session/list", params, stage.options.timeout_s)
