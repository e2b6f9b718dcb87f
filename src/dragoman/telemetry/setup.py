"""Turns telemetry on, by the standard OpenTelemetry variables or by a program's call.

A process starts to load OpenTelemetry in a thread with its first session, and waits for it before the first prompt.
`initialize` is answered before that. If loading fails, the problem is logged once and telemetry stays off.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError
from dragoman.loading import load_in_background
from dragoman.telemetry.operation import is_on, use_tracer

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

LAST_EXPORT_S = 3.0
"""How long the end of a process may wait for a collector. An editor kills an agent that takes much longer."""

_ENABLING = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
)
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURING = frozenset(("true", "1", "span_only", "span_and_event"))

_log = logging.getLogger("dragoman.telemetry")

_loading: "Future[None] | None" = None


class TelemetryError(DragomanError):
    """Telemetry was requested but cannot be used. The message says how to fix it."""


def is_requested(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the environment names a collector or an exporter and does not disable telemetry."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(environ.get(name, "").strip().lower() not in {"", "none"} for name in _ENABLING)


def captures_content(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the environment allows the text of prompts, answers and results in spans."""
    return environ.get(_CAPTURE, "").strip().lower() in _CAPTURING


def start_loading(service: str) -> None:
    """Start to load telemetry if the environment asks for it, once per process. `service` is its default name."""
    global _loading  # noqa: PLW0603 -- one process has one telemetry, as in OpenTelemetry itself
    if _loading is None and not is_on() and is_requested():
        _loading = load_in_background(lambda: _start(service))


async def wait_loaded() -> None:
    """Wait until telemetry is loaded. Return at once if it is not loading."""
    if _loading is not None and not _loading.done():
        await asyncio.wrap_future(_loading)


def enable(*, tracer_provider: "TracerProvider | None" = None, meter_provider: "MeterProvider | None" = None) -> None:
    """Trace and measure with the given providers. The default is the providers set for the whole process.

    The program starts them and shuts them down. Raises TelemetryError if OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import metrics, trace

        from dragoman.telemetry.otel import OtelTracer
    except ImportError as error:
        raise _not_installed(error) from None
    tracer = OtelTracer(
        tracer_provider or trace.get_tracer_provider(),
        meter_provider or metrics.get_meter_provider(),
        captures_content=captures_content(),
    )
    use_tracer(tracer)


def _start(service: str) -> None:
    try:
        tracer, shut_down = _load(service)
    except TelemetryError as problem:
        _log.error("telemetry is off: %s", problem)
        return
    except Exception:  # noqa: BLE001 -- boundary: a library that fails to set up must not fail a turn
        _log.error("telemetry is off: OpenTelemetry could not be set up", exc_info=True)
        return
    atexit.register(_end_in_time, shut_down)
    use_tracer(tracer)


def _load(service: str) -> tuple[Any, Any]:
    try:
        from dragoman.telemetry.otel import OtelTracer
        from dragoman.telemetry.providers import make_providers
    except ImportError as error:
        raise _not_installed(error) from None
    providers = make_providers(os.environ, service)
    tracer = OtelTracer(providers.tracer, providers.meter, captures_content=captures_content())
    return tracer, providers.shut_down


def _not_installed(error: ImportError) -> TelemetryError:
    from dragoman.installation import how_to_add

    return TelemetryError(f"{error.name or 'OpenTelemetry'} is not installed; {how_to_add('otel')}")


def _end_in_time(shut_down: Any) -> None:
    """Export the remaining data in a thread. Wait at most `LAST_EXPORT_S` for it."""
    ending = threading.Thread(target=shut_down, name="dragoman-telemetry-end", daemon=True)
    ending.start()
    ending.join(LAST_EXPORT_S)
