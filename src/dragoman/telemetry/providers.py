"""The OpenTelemetry providers of a process whose environment asks for telemetry.

If the program has set providers for the whole process, they are kept. Otherwise new ones are created as the
specification of the variables says. `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` name the exporters: `otlp` by
default, `console`, `none`, or one of another package. The exporters and the SDK read the other variables themselves.
The OTLP protocol is `http/protobuf`, unless `OTEL_EXPORTER_OTLP_PROTOCOL` names another.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import msgspec
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from dragoman.telemetry.setup import TelemetryError

HTTP = "http/protobuf"
_OTLP = {HTTP: "otlp_proto_http", "grpc": "otlp_proto_grpc"}


class Providers(msgspec.Struct, frozen=True):
    """The providers of a process, and a function that exports their last data and shuts them down."""

    tracer: trace.TracerProvider
    meter: metrics.MeterProvider
    shut_down: Callable[[], None]


def make_providers(environ: Mapping[str, str], service: str) -> Providers:
    """Return the providers of the program, or create them. Raises TelemetryError."""
    own_traces, own_metrics = trace.get_tracer_provider(), metrics.get_meter_provider()
    ends: list[Callable[[], Any]] = []
    resource = _resource(environ, service)
    if type(own_traces) is trace.ProxyTracerProvider:
        spans = _exporter(environ, "traces")
        own_traces = tracer = TracerProvider(resource=resource, shutdown_on_exit=False)
        if spans is not None:
            tracer.add_span_processor(BatchSpanProcessor(spans))
        trace.set_tracer_provider(tracer)
        ends.append(tracer.shutdown)
    if not isinstance(own_metrics, MeterProvider):
        points = _exporter(environ, "metrics")
        readers = [] if points is None else [PeriodicExportingMetricReader(points)]
        own_metrics = meter = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        metrics.set_meter_provider(meter)
        ends.append(meter.shutdown)

    def shut_down() -> None:
        for end in ends:
            end()

    return Providers(own_traces, own_metrics, shut_down)


def _resource(environ: Mapping[str, str], service: str) -> Resource:
    """Return the resource. Add our service name unless the environment has one."""
    named: dict[str, str] = {}
    if not environ.get("OTEL_SERVICE_NAME") and f"{SERVICE_NAME}=" not in environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        named[SERVICE_NAME] = service
    return Resource.create(named)


def _exporter(environ: Mapping[str, str], signal: str) -> Any:
    """Return the exporter of a signal, or None if the variable says none. Raises TelemetryError."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    name = environ.get(variable, "").strip() or "otlp"
    if name == "none":
        return None
    if name == "otlp":
        protocol = _protocol(environ, signal)
        name = _OTLP.get(protocol, "")
        if not name:
            raise TelemetryError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}. Expected {' or '.join(_OTLP)}")
    found = [*entry_points(group=f"opentelemetry_{signal}_exporter", name=name)]
    if not found:
        package = (
            "opentelemetry-exporter-otlp-proto-grpc" if name == "otlp_proto_grpc" else "the package that provides it"
        )
        raise TelemetryError(
            f"there is no exporter {name!r} for {signal}. Install {package}, or set {variable} to otlp, console or none"
        )
    return found[0].load()()


def _protocol(environ: Mapping[str, str], signal: str) -> str:
    own = environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "").strip()
    return own or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip() or HTTP
