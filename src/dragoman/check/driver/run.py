"""Checking an agent: playing all scenes and making one report."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.check.driver.connection import AgentGoneError
from dragoman.check.driver.options import AgentOptions
from dragoman.check.driver.scenes import ANY_VERSION, CONVERSATIONS, FIRST, REMOTE, SCENES, WITHOUT_SESSIONS, Scene
from dragoman.check.driver.scenes.http import exchange
from dragoman.check.driver.stage import Knowledge, Stage
from dragoman.check.judge import AgentMemory
from dragoman.check.results import CheckReport, make_report
from dragoman.check.rule import VERSIONS, Version
from dragoman.errors import DragomanError, ErrorCode
from dragoman.proc import Supervisor

MAX_AT_ONCE = 4
"""Maximum number of rows that run concurrently. They mostly wait, and an agent starts about fifteen times."""
AT_ONCE = ((1.0, MAX_AT_ONCE), (2.5, 2))
"""Start times in seconds, each with the number of concurrent rows below it. Slower agents get one row at a time.

Agents that start slowly keep a processor busy. On a small machine, four of them at once are four times as slow.
"""

V2_FIELDS = frozenset({"capabilities", "info"})
"""Fields of an `initialize` response that have other names in version 1."""


def rows_at_once(start_s: float) -> int:
    """Return how many rows of scenes may run concurrently with an agent that needs this long to start."""
    return next((rows for limit_s, rows in AT_ONCE if start_s < limit_s), 1)


async def check_agent(options: AgentOptions) -> CheckReport:
    """Play every scene with the agent and return the result of every rule.

    Raises StartError if it cannot be started, ConnectionClosedError if its URL does not answer, UnsupportedVersionError
    and FloodedError.
    """
    try:
        return await _check(options)
    except* DragomanError as failures:
        raise _first(failures) from None


def _first(failures: BaseExceptionGroup[DragomanError]) -> DragomanError:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


class UnsupportedVersionError(DragomanError):
    """The agent does not speak the requested version of the protocol."""

    def __init__(self, version: Version) -> None:
        super().__init__(
            f"the agent does not speak version {version} of the protocol: it answers with another one. Leave out "
            "--protocol to judge it by the versions that it speaks"
        )


async def _check(options: AgentOptions) -> CheckReport:
    memory = AgentMemory()
    knowledge_of: dict[Version, Knowledge] = {}
    for version in options.protocols or VERSIONS:
        is_mute = any(each.is_mute for each in knowledge_of.values())
        knowledge_of[version] = Knowledge(version, memory)
        knowledge_of[version].is_mute = is_mute
        with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
            async with Supervisor() as supervisor:
                await _check_version(options, supervisor, Path(directory), knowledge_of[version])
        if knowledge_of[version].is_deaf or knowledge_of[version].has_silent_sessions:
            break  # the same streams would not work in another version either
    judges = [judge for knowledge in knowledge_of.values() for judge in knowledge.judges]
    return make_report(judges, "agent", _find_spoken(options, knowledge_of))


def _find_spoken(options: AgentOptions, knowledge_of: dict[Version, Knowledge]) -> Sequence[Version]:
    """Return the versions to report on. Raises UnsupportedVersionError."""
    spoken: list[Version] = [version for version, knowledge in knowledge_of.items() if knowledge.greeting is not None]
    # Version 1 is always reported on, unless the agent refused it and speaks version 2. A version that the user
    # requests is an error only if the agent has answered without it.
    if options.protocols is None:
        is_without_first = 2 in spoken and knowledge_of[1].refusal == ErrorCode.UNSUPPORTED_VERSION
        return spoken if is_without_first else [VERSIONS[0], *(version for version in spoken if version != 1)]
    for version in options.protocols:
        if version != 1 and version in knowledge_of and version not in spoken and knowledge_of[version].has_answered:
            raise UnsupportedVersionError(version)
    return list(options.protocols)


async def _check_version(options: AgentOptions, supervisor: Supervisor, root: Path, knowledge: Knowledge) -> None:
    def stage() -> Stage:
        return Stage(options, supervisor, root, knowledge)

    await _play_row(stage(), [FIRST])
    if options.protocols is None and not _uses_v2_fields(knowledge):
        knowledge.greeting = None
    if knowledge.greeting is not None:
        rows = _select(options, knowledge.dialect.version)
        if options.url and [exchange] in rows:  # without working streams, no other scene makes sense
            rows.remove([exchange])
            await _play_row(stage(), [exchange])
        if knowledge.has_silent_sessions:
            rows = [[scene for scene in row if scene in WITHOUT_SESSIONS] for row in rows]
        if not knowledge.is_deaf:
            await _play_all(stage, rows, knowledge)
    elif knowledge.has_answered and knowledge.dialect.version == 1:
        await _play_row(stage(), [ANY_VERSION])


def _uses_v2_fields(knowledge: Knowledge) -> bool:
    """Return whether a response with version 2 has fields of version 2. Some agents echo any requested version."""
    return knowledge.dialect.version == 1 or not knowledge.greeting or not V2_FIELDS.isdisjoint(knowledge.greeting)


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
    except* AgentGoneError:
        pass  # its earlier messages are judged
