"""Runs each contender of each measure once with the smallest size, so that no benchmark can break unnoticed.

The figures have no meaning, because parts run concurrently. Only their existence is checked. The measures of a part
share homes, servers and runs, so each part is a process that runs its measures one after another.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from bench.measure import Measure, MissingError

WORKERS = 4


def run_parts(parts: Sequence[str], title: str) -> int:
    """Run each part in a process and print its output when it ends. Return 1 if one failed."""
    began = time.monotonic()

    def run_part(part: str) -> int:
        command = (sys.executable, "-m", "bench", "--smoke", part, "--title", title)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout, end="", flush=True)
        return done.returncode

    with ThreadPoolExecutor(WORKERS) as pool:
        codes = dict(zip(parts, pool.map(run_part, parts), strict=True))
    failed = [part for part, code in codes.items() if code != 0]
    print(f"{len(parts)} parts, {len(failed)} failed ({', '.join(failed) or 'none'}), {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


def run(measures: Sequence[Measure]) -> int:
    """Run the measures of one part. Return 1 if a contender failed."""
    # In order, because some figures are the difference of two earlier ones.
    failed = [_is_failure(measure, name) for measure in measures for name in measure.contenders]
    return 1 if any(failed) else 0


def _is_failure(measure: Measure, name: str) -> bool:
    """Run a contender and print its outcome. After a failure, print everything that its processes reported."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as report:
        stderr = os.dup(2)
        os.dup2(report.fileno(), 2)
        try:
            failure, words = _run_once(measure.contenders[name])
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        print(f"{time.monotonic() - began:5.1f} s  {measure.part}: {measure.title}: {name}: {words}", flush=True)
        if failure:
            report.seek(0)
            print(f"{failure}\nIts processes reported:\n{report.read()}", flush=True)
    return bool(failure)


def _run_once(measure_once: Callable[[], float]) -> tuple[str, str]:
    """Return the failure, if any, and the outcome."""
    try:
        figure = measure_once()
    except MissingError as missing:
        return "", f"not run: {missing}"
    except Exception:  # noqa: BLE001 - each contender is tried, whatever another one does
        return traceback.format_exc(), "FAILED"
    return ("", "ok") if math.isfinite(figure) else (f"the figure is {figure}", "FAILED")
