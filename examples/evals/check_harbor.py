"""Run harbor's agent against our agent with a scripted model, on this machine in place of a container.

The exit code is 0 if harbor's model accepts the trajectory and the task's file exists.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harbor.environments.base import ExecResult
from harbor.models.agent.context import AgentContext
from harbor.models.trajectories import Trajectory
from harbor_agent import AcpAgent

SCRIPT = Path(__file__).parent / "scripts" / "hello.yaml"


class ThisMachine:
    """The part of harbor's environment interface that the agent uses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._variables = {**os.environ, "PATH": path, "DRAGOMAN_HOME": str(folder.parent / "home")}

    async def exec(self, command: str) -> ExecResult:
        """Run a command in the task's directory."""
        done = await asyncio.to_thread(
            subprocess.run, ["sh", "-c", command], cwd=self._folder, env=self._variables, capture_output=True, text=True
        )
        return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=done.returncode)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file."""
        shutil.copy(source_path, target_path)


async def main() -> None:
    """Set up the agent, run it and check its results."""
    with tempfile.TemporaryDirectory() as name:
        folder, logs = Path(name, "task"), Path(name, "logs")
        folder.mkdir()
        logs.mkdir()
        agent = AcpAgent(logs, command=f"dragoman agent --model script:{SCRIPT}")
        context = AgentContext()
        await agent.setup(ThisMachine(folder))
        await agent.run("Write a file hello.txt with the word hello.", ThisMachine(folder), context)
        assert (folder / "hello.txt").read_text() == "hello\n"
        trajectory = Trajectory.model_validate(json.loads((logs / "trajectory.json").read_text()))
        assert context.n_input_tokens == 40, context
        print(
            f"harbor: {len(trajectory.steps)} steps, {context.n_input_tokens} tokens in, {context.n_output_tokens} out"
        )


if __name__ == "__main__":
    asyncio.run(main())
