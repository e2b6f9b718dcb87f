"""Checking an agent: all scenes, and one report."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.check.driver.connection import AgentGone
from dragoman.check.driver.options import AgentOptions
from dragoman.check.driver.scenes import ANY_VERSION, CONVERSATIONS, FIRST, REMOTE, SCENES, Scene
from dragoman.check.driver.stage import Knowledge, Stage
from dragoman.check.judge import Memory
from dragoman.check.judge.initialization import UNSUPPORTED_VERSION
from dragoman.check.results import CheckReport, report
from dragoman.check.rule import VERSIONS, Version
from dragoman.errors import DragomanError
from dragoman.proc import Supervisor

MAX_AT_ONCE = 4
"""Rows of scenes that run at the same time: most of the time they wait, and an agent starts some fifteen times."""
AT_ONCE = ((1.0, MAX_AT_ONCE), (2.5, 2))
"""Seconds that an agent may take to start, and the rows for it; for a slower one there is one row at a time.

Agents that are slow to start keep a processor busy: four of them at once are four times as slow, on a small machine."""

WORDS_OF_2 = frozenset({"capabilities", "info"})
"""Fields of an answer to `initialize` that version 1 names otherwise."""


def rows_at_once(start_s: float) -> int:
    """Return how many rows of scenes may run at the same time, with an agent that takes this long to start."""
    return next((rows for limit_s, rows in AT_ONCE if start_s < limit_s), 1)


async def check_agent(options: AgentOptions) -> CheckReport:
    """Play every scene with the agent and return the result of every rule.

    Raises StartError when it cannot be started, ConnectionClosed when its address does not answer, VersionNotSpoken,
    Flooded.
    """
    try:
        return await _check(options)
    except* DragomanError as failures:
        raise _first(failures) from None


def _first(failures: BaseExceptionGroup[DragomanError]) -> DragomanError:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


class VersionNotSpoken(DragomanError):
    """The agent does not speak the version of the protocol that it is to be judged by."""

    def __init__(self, version: Version) -> None:
        super().__init__(
            f"the agent does not speak version {version} of the protocol: it answers with another one. Leave "
            "--protocol out to judge it by the versions that it speaks"
        )


async def _check(options: AgentOptions) -> CheckReport:
    memory = Memory()
    known: dict[Version, Knowledge] = {}
    for version in options.protocols or VERSIONS:
        known[version] = Knowledge(version, memory)
        with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
            async with Supervisor() as supervisor:
                await _check_version(options, supervisor, Path(directory), known[version])
    judges = [judge for knowledge in known.values() for judge in knowledge.judges]
    return report(judges, "agent", _find_spoken(options, known))


def _find_spoken(options: AgentOptions, known: dict[Version, Knowledge]) -> Sequence[Version]:
    """Return the versions to report on. Raises VersionNotSpoken."""
    spoken: list[Version] = [version for version, knowledge in known.items() if knowledge.greeting is not None]
    if options.protocols is None:
        is_without_first = 2 in spoken and known[1].refusal == UNSUPPORTED_VERSION
        return spoken if is_without_first else [VERSIONS[0], *(version for version in spoken if version != 1)]
    for version in options.protocols:
        if version != 1 and version not in spoken and known[version].has_answered:
            raise VersionNotSpoken(version)
    return list(options.protocols)


async def _check_version(options: AgentOptions, supervisor: Supervisor, root: Path, knowledge: Knowledge) -> None:
    def stage() -> Stage:
        return Stage(options, supervisor, root, knowledge)

    await _play_row(stage(), [FIRST])
    if options.protocols is None and not _speaks_in_words(knowledge):
        knowledge.greeting = None
    if knowledge.greeting is not None:
        await _play_all(stage, _select(options, knowledge.dialect.version), knowledge)
    elif knowledge.has_answered and knowledge.dialect.version == 1:
        await _play_row(stage(), [ANY_VERSION])


def _speaks_in_words(knowledge: Knowledge) -> bool:
    """Tell whether an answer with version 2 has words of it: some agents answer with any version they are asked for."""
    return knowledge.dialect.version == 1 or not knowledge.greeting or not WORDS_OF_2.isdisjoint(knowledge.greeting)


def _select(options: AgentOptions, version: Version) -> list[list[Scene]]:
    played = (*SCENES[version], *(REMOTE if options.url else ()))
    rows = ([each for each in row if options.scenes is None or each.__name__ in options.scenes] for row in played)
    return [row for row in rows if row]


async def _play_all(stage: Callable[[], Stage], rows: list[list[Scene]], knowledge: Knowledge) -> None:
    if not any(conversation in row for row in rows for conversation in CONVERSATIONS):
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
