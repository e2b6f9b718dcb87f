"""A pytest plugin with the sandbox of this machine, if it has one."""

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.proc import Supervisor
from dragoman.sandbox.bubblewrap import find_program
from dragoman.sandbox.sandbox import find_problem

INSTALL = Path(__file__).parent.parent.parent / "scripts" / "bubblewrap"

PROGRAM = find_program() or "bwrap"
WITHOUT_BWRAP = [PROGRAM, "--dev-bind", "/", "/", "--ro-bind", "/dev/null", PROGRAM, "--"]
"""Runs a command as on a machine without bubblewrap."""


@pytest.fixture
async def sandboxed():
    """Skip the test if this machine has no sandbox, and say why."""
    if sys.platform != "linux":
        pytest.skip("the sandbox of macOS is not tested")
    if INSTALL.is_relative_to("/tmp"):
        pytest.skip("the sandbox hides /tmp, and the tests with their Python are there")
    if find_program() is None:
        subprocess.run([INSTALL], check=False, capture_output=True)
    async with Supervisor() as supervisor:
        if (problem := await find_problem(supervisor)) is not None:
            pytest.skip(problem)
