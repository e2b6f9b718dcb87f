"""Attempts to get out of the sandbox, which all work without it."""

import errno
import json
import subprocess
import sys

import pytest

from dragoman.proc import EVERYTHING, Supervisor
from dragoman.sandbox.active_files import ActiveFiles
from dragoman.sandbox.sandbox import Sandbox
from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.world import COMMAND, HAS_IPV6, IS_ROOT, World, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of macOS is not tested")

HERE = {"": True, "root": IS_ROOT, "IPv6": HAS_IPV6}
NOT_HERE = [name for name, each in ATTEMPTS.items() if not HERE.get(each.needs)]
"""The attempts that cannot work on this machine, even without the sandbox."""


@pytest.fixture
def world(monkeypatch):
    with World() as world:
        monkeypatch.setenv("HOME", str(world.home))
        monkeypatch.setenv("DRAGOMAN_HOME", str(world.home / ".dragoman"))
        yield world


async def escapes(world, mode):
    """Run all attempts in the sandbox. Return those that got out, and the answers of the others."""
    active = ActiveFiles(str(world.workspace / "state"))
    sandbox = Sandbox(mode, [str(world.workspace), str(world.extra)], active_files=active)
    command = sandbox.wrap([*COMMAND, world.write_notes(())], str(world.workspace))
    output = bytearray()
    async with Supervisor() as supervisor:
        child = await supervisor.start(command, cwd=str(world.workspace), inherit=EVERYTHING)
        reader = child.read_stdout(lambda data: bool(output.extend(data)) or True)
        ended = await child.stop(grace_s=60)
        reader.close()
    assert ended.code == 0, child.stderr_tail
    sandbox.rename_new_files()
    results = json.loads(output)
    return results, [name for name, result in results.items() if world.has_escaped(result)]


async def test_no_attempt_leaves_the_sandbox(sandboxed, world):
    results, escaped = await escapes(world, "workspace")
    assert escaped == []
    assert results.keys() == ATTEMPTS.keys()


async def test_no_attempt_leaves_the_sandbox_with_network(sandboxed, world):
    results, escaped = await escapes(world, "workspace+network")
    assert [name for name in escaped if not name.startswith("network: ")] == []
    assert "network: TCP over IPv4" in escaped, results["network: TCP over IPv4"]


async def test_attempts_work_without_the_sandbox(sandboxed, world):
    assert len(ATTEMPTS.keys() - set(NOT_HERE)) >= 60
    done = subprocess.run(
        [*COMMAND, world.write_notes(NOT_HERE)],
        cwd=world.workspace,
        env=environment(world),
        pass_fds=[world.descriptor],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    failed = {name: result for name, result in results.items() if not world.has_escaped(result)}
    not_supported = f"[Errno {errno.EOPNOTSUPP}]"  # by the file system
    assert {name: result for name, result in failed.items() if not_supported not in result.get("error", "")} == {}
