"""Checking an agent: all scenes, and one report."""

import asyncio
import tempfile
from pathlib import Path

from dragoman.check.conclude import report
from dragoman.check.driver.link import Gone
from dragoman.check.driver.options import Options
from dragoman.check.driver.scenes import CONVERSATION, FIRST, SCENES, Scene
from dragoman.check.driver.stage import Stage
from dragoman.check.finding import Report
from dragoman.proc import Supervisor

AT_ONCE = 4
"""Scenes that are played at a time: most of each is waiting, and a slow agent starts some twenty times."""


async def check_agent(options: Options) -> Report:
    """Play every scene with the agent and say, rule by rule, what was seen.

    Raises StartError when it cannot be started, ConnectionClosed when its address does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
        async with Supervisor() as supervisor:
            stage = Stage(options, supervisor, Path(directory))
            await _play(stage, FIRST)
            if stage.greeting is not None:
                await _play_all(stage, _select(options))
            return report(stage.judges, "agent")


def _select(options: Options) -> list[Scene]:
    return [each for each in SCENES if options.scenes is None or each.__name__ in options.scenes]


async def _play_all(stage: Stage, scenes: list[Scene]) -> None:
    if CONVERSATION not in scenes:
        stage.has_conversed.set()
    limit = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        for scene in scenes:
            tasks.create_task(_play_in_turn(stage, scene, limit))


async def _play_in_turn(stage: Stage, scene: Scene, limit: asyncio.Semaphore) -> None:
    async with limit:
        await _play(stage, scene)


async def _play(stage: Stage, scene: Scene) -> None:
    if stage.options.on_scene is not None:
        stage.options.on_scene((scene.__doc__ or "").split("\n", 1)[0].rstrip("."))
    try:
        await scene(stage)
    except* Gone:
        pass  # what it did before it went is judged
