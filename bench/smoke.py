"""Runs each contender of each measure once with the smallest size, so that no benchmark can break unnoticed.

The figures have no meaning, because measures run concurrently. Only their existence is checked.
"""

import math
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from bench.measure import Measure, MissingError

WORKERS = 4


def run(measures: Sequence[Measure]) -> int:
    """Print which contenders failed or cannot run here. Return 1 if one failed."""
    began = time.monotonic()
    with ThreadPoolExecutor(WORKERS) as pool:
        failures = [each for failed in pool.map(_try_all, measures) for each in failed]
    # Alone, because a time limit that was reached beside other measures does not show that the benchmark is broken.
    failures = [(measure, name) for measure, name in failures if _try(measure, name)]
    print(f"{len(measures)} measures, {len(failures)} failed contenders, {time.monotonic() - began:.0f} s")
    for measure, name in failures:
        print(f"failed: {measure.part}: {measure.title}: {name}")
    return 1 if failures else 0


def _try_all(measure: Measure) -> list[tuple[Measure, str]]:
    # In order, because some figures are the difference of two earlier ones.
    return [(measure, name) for name in measure.contenders if _try(measure, name)]


def _try(measure: Measure, name: str) -> bool:
    began = time.monotonic()
    words, failed = "ok", False
    try:
        figure = measure.contenders[name]()
        if not math.isfinite(figure):
            words, failed = f"FAILED: no figure but {figure}", True
    except MissingError as missing:
        words = f"not run: {missing}"
    except Exception:  # noqa: BLE001 - each contender is tried, whatever another one does
        words, failed = f"FAILED\n{traceback.format_exc()}", True
    print(f"{time.monotonic() - began:5.1f} s  {measure.part}: {measure.title}: {name}: {words}", flush=True)
    return failed
