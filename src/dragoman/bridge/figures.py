"""The metrics of a bridge: gauges of its current state and counters of its traffic."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from dragoman.telemetry.operation import observe

MEASURE_TIMEOUT_S = 2.0
"""How long an exporter waits for the event loop, which may be busy or closed."""


class Figure(msgspec.Struct, frozen=True):
    """One value of one metric, with its labels."""

    name: str
    value: float
    labels: Mapping[str, str]


FIGURES: dict[str, tuple[Literal["gauge", "counter"], str]] = {
    "dragoman_agent_up": ("gauge", "Whether the agent runs and has answered initialize."),
    "dragoman_agent_starts_total": ("counter", "How often the agent was started; all but the first are restarts."),
    "dragoman_agent_bytes_total": ("counter", "Bytes between the bridge and the agent, by direction."),
    "dragoman_agent_messages_total": ("counter", "Messages between the bridge and the agent, by direction."),
    "dragoman_agent_requests_pending": ("gauge", "Requests that the agent has not answered."),
    "dragoman_agent_queue_bytes": ("gauge", "Bytes that the agent has not read yet."),
    "dragoman_sessions": ("gauge", "Sessions that are open in the bridge, by phase."),
    "dragoman_viewers": ("gauge", "Clients that are connected."),
    "dragoman_viewer_queue_bytes": ("gauge", "Bytes of answers and requests that viewers have not read yet."),
    "dragoman_viewer_lag_messages": ("gauge", "Journal messages that the slowest viewer has not read yet."),
    "dragoman_questions_open": (
        "gauge",
        "Requests of the agent that no viewer has answered, mostly permission requests.",
    ),
    "dragoman_journals_waiting": ("gauge", "Journals whose end is not written, because the disk is full."),
}
"""The kind and the meaning of each metric. A gauge goes up and down, and a counter only up."""


def send_to_telemetry(measure: Callable[[], Sequence[Figure]]) -> None:
    """Report the figures as OpenTelemetry metrics, if these are enabled. Call this inside the bridge's event loop."""
    loop = asyncio.get_running_loop()

    async def measure_now() -> Sequence[Figure]:
        return measure()

    def read() -> list[tuple[str, float, Mapping[str, str]]]:
        """Measure in the event loop. The exporter calls this from another thread, even after the loop has closed."""
        measuring = measure_now()
        try:
            figures = asyncio.run_coroutine_threadsafe(measuring, loop).result(MEASURE_TIMEOUT_S)
        except (RuntimeError, TimeoutError):
            measuring.close()
            return []
        return [(figure.name, figure.value, figure.labels) for figure in figures]

    observe({name: meaning for name, (_, meaning) in FIGURES.items()}, read)


def write_prometheus(figures: Sequence[Figure]) -> bytes:
    """Return figures in the text format of Prometheus, version 0.0.4."""
    lines: list[str] = []
    for name, (kind, meaning) in FIGURES.items():
        samples = [figure for figure in figures if figure.name == name]
        if samples:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *map(_sample, samples)]
    return "".join(f"{line}\n" for line in lines).encode()


def _sample(figure: Figure) -> str:
    labels = ",".join(f'{name}="{_escape(value)}"' for name, value in figure.labels.items())
    return f"{figure.name}{{{labels}}} {figure.value:.15g}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
