"""The figures of a bridge, for monitoring: how much there is of what, and how much has passed."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from dragoman.telemetry.operation import observe

MEASURE_TIMEOUT_S = 2.0
"""How long an exporter waits for the event loop, which is busy or has ended."""


class Figure(msgspec.Struct, frozen=True):
    """One figure of an agent: a number that goes up and down (`gauge`), or only up (`counter`)."""

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
    "dragoman_viewer_queue_bytes": ("gauge", "Bytes of answers and questions that wait for viewers to take them."),
    "dragoman_viewer_lag_messages": ("gauge", "Messages of journals that the viewer furthest behind has not taken."),
    "dragoman_questions_open": ("gauge", "Requests of the agent that no viewer has answered, permissions most of all."),
    "dragoman_journals_waiting": ("gauge", "Journals whose end is not written, because the disk takes nothing."),
}
"""The kind and the meaning of each figure."""


def send_to_telemetry(measure: Callable[[], Sequence[Figure]]) -> None:
    """Have the figures sent as metrics of OpenTelemetry, if that is on; called inside the event loop of the bridge."""
    loop = asyncio.get_running_loop()

    async def take() -> Sequence[Figure]:
        return measure()

    def read() -> list[tuple[str, float, Mapping[str, str]]]:
        """Measure in the event loop: the exporter calls from a thread of its own, also when the loop has ended."""
        taking = take()
        try:
            figures = asyncio.run_coroutine_threadsafe(taking, loop).result(MEASURE_TIMEOUT_S)
        except (RuntimeError, TimeoutError):
            taking.close()
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
