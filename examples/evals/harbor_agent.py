"""An ACP agent as a harbor agent, which runs in the container of each task.

    pip install harbor            (Python 3.12 or later)
    export PYTHONPATH=examples/evals
    harbor run --dataset terminal-bench@2.0 --agent harbor_agent:AcpAgent --agent-kwarg command="claude-agent-acp"

`dragoman run` drives the agent inside the container and `dragoman tap` records it. The recording becomes
`trajectory.json` in ATIF, with the tokens of the run.
"""

import json
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from dragoman import __version__
from dragoman.client import read_sessions, to_atif

RECORDING = "/tmp/dragoman-recording.jsonl"
INSTALL = "command -v dragoman || pip install --quiet dragoman || pip install --quiet --break-system-packages dragoman"


class AcpAgent(BaseAgent):
    """Any ACP agent, started by `command` in the environment of the task."""

    def __init__(
        self, logs_dir: Path, *args: Any, command: str = "dragoman agent", setup: str = "", **options: Any
    ) -> None:
        super().__init__(logs_dir, *args, **options)
        self._command = command
        self._setup = setup

    @staticmethod
    def name() -> str:
        """Return the name that harbor shows."""
        return "acp"

    def version(self) -> str | None:
        """Return the version of the client that drives the agent."""
        return __version__

    async def setup(self, environment: BaseEnvironment) -> None:
        """Install the client, and the agent with its install command."""
        for step in (INSTALL, self._setup):
            if step:
                done = await environment.exec(step)
                if done.return_code != 0:
                    raise RuntimeError(f"{step} failed: {done.stderr or done.stdout}")

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Send the instruction to the agent. Its recording is downloaded even if the agent fails."""
        agent = f"dragoman tap --record-only --record {RECORDING} -- {self._command}"
        prompt = shlex.quote(instruction)
        done = await environment.exec(f"rm -f {RECORDING}; dragoman run {prompt} --policy all --format json -- {agent}")
        (self.logs_dir / "dragoman-run.json").write_text(done.stdout or "")
        (self.logs_dir / "dragoman-run.log").write_text(done.stderr or "")
        recording = self.logs_dir / "recording.jsonl"
        await environment.download_file(RECORDING, recording)
        self._read_recording(recording, context)

    def _read_recording(self, recording: Path, context: AgentContext) -> None:
        sessions = [session for session in read_sessions(recording) if session.steps]
        if not sessions:
            return
        document = to_atif(sessions[0])
        (self.logs_dir / "trajectory.json").write_text(json.dumps(document, indent=2))
        metrics = document["final_metrics"]
        context.n_input_tokens = metrics.get("total_prompt_tokens")
        context.n_output_tokens = metrics.get("total_completion_tokens")
        context.n_cache_tokens = metrics.get("total_cached_tokens")
        context.cost_usd = metrics.get("total_cost_usd")
