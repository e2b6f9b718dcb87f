"""A prompt that is answered at once.

It is measured twice: with both processes where the system places them, and with both on one core. Between cores, most
of a round trip may be waking an idle core twice. The limit, one byte in each direction, shows how much this costs here.
"""

import os
from collections.abc import Callable
from typing import Any

from bench import commands
from bench.client_run import run_reporter
from bench.measure import PYTHON_SDK, Measure, MissingError, Target
from bench.pairs import OURS, contenders
from bench.size import size

OPTIONS = ("--roundtrips", str(size(2000, 20)))
LIMIT = "limit: a byte and back"


def read_p50_us(report: dict[str, Any]) -> float:
    return 1e6 * report["roundtrip_p50_s"]


def run_limit() -> float:
    return read_p50_us(run_reporter((*commands.python("ping_pong.py"), *OPTIONS)))


def on_one_core(measure_once: Callable[[], float]) -> Callable[[], float]:
    """Run a function's processes on our own core. Raises MissingError if the system cannot do that."""

    def run() -> float:
        if not hasattr(os, "sched_setaffinity"):
            raise MissingError("processes cannot be kept on a core here")
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            return measure_once()
        finally:
            os.sched_setaffinity(0, cores)

    return run


CONTENDERS = contenders(OPTIONS, read_p50_us) | {LIMIT: run_limit}
TARGETS = (Target(OURS, PYTHON_SDK, "at most", 1 / 3),)

MEASURES = (
    Measure(
        part="roundtrip",
        title="round trip, p50",
        unit="µs",
        contenders=CONTENDERS,
        targets=TARGETS,
        rounds=7,
        quick_rounds=3,
    ),
    Measure(
        part="roundtrip",
        title="round trip on one core, p50",
        unit="µs",
        contenders={name: on_one_core(measure_once) for name, measure_once in CONTENDERS.items()},
        targets=TARGETS,
        rounds=5,
        quick_rounds=3,
    ),
)
