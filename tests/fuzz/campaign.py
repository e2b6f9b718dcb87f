"""A run of one target in a child process, with its corpus, options and outcome."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SEEDS = Path(__file__).parent / "corpus"
FINDINGS = ROOT / ".cache" / "fuzz"
MAX_INPUT_BYTES = 8192
INPUT_TIMEOUT_S = 30
"""A slower input is a finding. Even a busy machine needs only milliseconds."""
MAX_RSS_MB = 1024
IN_A_CHILD = ("sh", "-c", '"$@"; exit $?', "sh")
"""libFuzzer reads its peak memory from the kernel, which includes the memory of the process that started it. A pytest
worker may exceed the limit, so a small shell starts libFuzzer."""

GRACE_S = 60

WHY_NOT = "atheris is not here (it needs CPython 3.11 to 3.13 on Linux or macOS): only the seed corpus is replayed"


class Outcome(NamedTuple):
    """The outcome of one run."""

    exit_code: int
    inputs: int
    output: str


def is_possible():
    """Return whether atheris is installed."""
    return importlib.util.find_spec("atheris") is not None


def run(target, seconds, *, findings=FINDINGS):
    """Fuzz one target for some seconds. The grown corpus and crashes are stored under `findings`."""
    grown = findings / target
    grown.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-timeout={INPUT_TIMEOUT_S}",
        f"-rss_limit_mb={MAX_RSS_MB}",
        f"-artifact_prefix={findings}/{target}-",
        "-print_final_stats=1",
    ]
    command = [*IN_A_CHILD, sys.executable, "-m", "tests.fuzz.engine", target, *options, str(grown), str(SEEDS)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds + INPUT_TIMEOUT_S + GRACE_S,
        check=False,
    )
    output = done.stdout.decode(errors="replace")
    executed = re.search(r"number_of_executed_units: *(\d+)", output)
    return Outcome(done.returncode, int(executed[1]) if executed else 0, output)


def replay_command(target, output):
    """Return the command that reproduces a finding, from the output of its run."""
    written = re.search(r"Test unit written to (\S+)", output)
    return f"{sys.executable} -m tests.fuzz.engine {target} {written[1]}" if written else None
