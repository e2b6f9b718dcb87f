"""Scenes share an agent as long as it is healthy. After a breach the next scene gets a new one."""

import shlex
import sys
from pathlib import Path

from dragoman.check.driver import AgentOptions, check_agent

ROOT = Path(__file__).parents[3]
SESSIONS = frozenset({"bad_parameters", "unknown_sessions", "lists"})


async def count_starts(home: Path, *rule: str) -> int:
    """Check an agent with three scenes of one row. Return the number of starts after the first scene."""
    agent = shlex.join([sys.executable, "-m", "tests.check.mutants.agent", str(home / "kept"), *rule])
    starts = home / "starts"
    command = ("sh", "-c", f"echo >> {shlex.quote(str(starts))}; exec {agent}")
    options = {"auth": "key", "scenes": SESSIONS, "protocols": (1,)}
    await check_agent(AgentOptions(command=command, env={"PYTHONPATH": str(ROOT)}, **options))
    return len(starts.read_bytes()) - 1


async def test_scenes_of_a_row_share_one_agent(tmp_path: Path):
    (tmp_path / "kept").mkdir()
    assert await count_starts(tmp_path) == 1


async def test_scene_after_a_breach_gets_a_new_agent(tmp_path: Path):
    (tmp_path / "kept").mkdir()
    assert await count_starts(tmp_path, "ACP-NEW-004") == 2  # broken only in the first scene
