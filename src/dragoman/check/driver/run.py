"""Checking an agent: all scenes, and one report."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from dragoman.check.driver.connection import AgentGone
from dragoman.check.driver.options import AgentOptions
from dragoman.check.driver.scenes import ANY_VERSION, CONVERSATION, FIRST, SCENES, Scene
from dragoman.check.driver.stage import Knowledge, Stage
from dragoman.check.results import CheckReport, report
from dragoman.errors import DragomanError
from dragoman.proc import Supervisor

MAX_AT_ONCE = 4
"""Rows of scenes that run at the same time: most of the time they wait, and an agent starts some fifteen times."""
AT_ONCE = ((1.0, MAX_AT_ONCE), (2.5, 2))
"""Seconds that an agent may take to start, and the rows for it; for a slower one there is one row at a time.

Agents that are slow to start keep a processor busy: four of them at once are four times as slow, on a small machine."""


def rows_at_once(start_s: float) -> int:
    """Return how many rows of scenes may run at the same time, with an agent that takes this long to start."""
    return next((rows for limit_s, rows in AT_ONCE if start_s < limit_s), 1)


async def check_agent(options: AgentOptions) -> CheckReport:
    """Play every scene with the agent and return the result of every rule.

    Raises StartError when it cannot be started, ConnectionClosed when its address does not answer, Flooded.
    """
    try:
        return await _check(options)
    except* DragomanError as failures:
        raise _first(failures) from None


def _first(failures: BaseExceptionGroup[DragomanError]) -> DragomanError:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


async def _check(options: AgentOptions) -> CheckReport:
    knowledge = Knowledge()
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
        async with Supervisor() as supervisor:

            def stage() -> Stage:
                return Stage(options, supervisor, Path(directory), knowledge)

            await _play_row(stage(), [FIRST])
            if knowledge.greeting is not None:
                await _play_all(stage, _select(options), knowledge)
            elif knowledge.has_answered:
                await _play_row(stage(), [ANY_VERSION])
    return report(knowledge.judges, "agent")


def _select(options: AgentOptions) -> list[list[Scene]]:
    rows = ([each for each in row if options.scenes is None or each.__name__ in options.scenes] for row in SCENES)
    return [row for row in rows if row]


async def _play_all(stage: Callable[[], Stage], rows: list[list[Scene]], knowledge: Knowledge) -> None:
    if not any(CONVERSATION in row for row in rows):
        knowledge.has_conversed.set()
    limit = asyncio.Semaphore(rows_at_once(knowledge.start_s))
    async with asyncio.TaskGroup() as tasks:
        for row in rows:
            tasks.create_task(_play_in_turn(stage(), row, limit))


async def _play_in_turn(stage: Stage, row: list[Scene], limit: asyncio.Semaphore) -> None:
    async with limit:
        await _play_row(stage, row)


async def _play_row(stage: Stage, row: list[Scene]) -> None:
    async with stage:
        for scene in row:
            await _play(stage, scene)


async def _play(stage: Stage, scene: Scene) -> None:
    if stage.options.on_scene is not None:
        stage.options.on_scene((scene.__doc__ or "").split("\n", 1)[0].rstrip("."))
    try:
        await scene(stage)
    except* AgentGone:
        pass  # its messages before that are judged
