"""A run of one target in a child process: its corpus, its options, and its outcome."""

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
"""An input that takes longer is a finding; a busy machine needs a few milliseconds."""
MAX_RSS_MB = 1024
IN_A_CHILD = ("sh", "-c", '"$@"; exit $?', "sh")
"""The kernel counts the memory of a process that starts another one as used by that one, and libFuzzer believes it: a
worker of pytest may have more than the limit. A shell between them has little."""

GRACE_S = 60

WHY_NOT = "atheris is not here (it needs CPython 3.11 to 3.13 on Linux or macOS): only the seed corpus is replayed"


class Outcome(NamedTuple):
    """The outcome of a run."""

    exit_code: int
    inputs: int
    output: str


def is_possible():
    """Tell whether atheris is installed."""
    return importlib.util.find_spec("atheris") is not None


def run(target, seconds, *, findings=FINDINGS):
    """Fuzz one target for so many seconds; the corpus grows under `findings`, and crashes are kept there."""
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
    """The command that shows a finding again, from the output of the run that found it."""
    written = re.search(r"Test unit written to (\S+)", output)
    return f"{sys.executable} -m tests.fuzz.engine {target} {written[1]}" if written else None
