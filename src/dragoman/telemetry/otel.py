"""Operations as OpenTelemetry spans and metrics. This module is imported only while telemetry is on."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider

from dragoman import __version__
from dragoman.telemetry.operation import META_KEYS, Attributes, Operation, OperationSpec, ReadFigures

SCOPE = "dragoman"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_MCP_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_TOKENS = tuple(4**power for power in range(14))
_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}

MAX_META_CHARACTERS = 8_192
"""The size limit of one trace context key in `_meta`: the limit of W3C Baggage, the longest of the three."""


class OtelTracer:
    """Opens spans and records their metrics."""

    def __init__(self, tracers: TracerProvider, meters: MeterProvider, *, captures_content: bool) -> None:
        self.captures_content = captures_content
        self._tracer = tracers.get_tracer(SCOPE, __version__, schema_url=SCHEMA_URL)
        self.meter = meter = meters.get_meter(SCOPE, __version__, schema_url=SCHEMA_URL)
        self.durations = {
            "gen_ai.client.operation.duration": meter.create_histogram(
                "gen_ai.client.operation.duration",
                unit="s",
                description="GenAI operation duration.",
                explicit_bucket_boundaries_advisory=_SECONDS,
            ),
            "mcp.client.operation.duration": meter.create_histogram(
                "mcp.client.operation.duration",
                unit="s",
                description="Duration of an MCP request as observed by its sender.",
                explicit_bucket_boundaries_advisory=_MCP_SECONDS,
            ),
        }
        self.first_chunks = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            unit="s",
            description="Time to the first part of an answer.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )

    def open(self, spec: OperationSpec, meta: Mapping[str, Any] | None = None) -> Operation:
        """Return an operation. Its parent is the context in `meta`, or else the current one."""
        return _SpanOperation(self, self._tracer, spec, _extract(meta))

    def observe(self, names: Mapping[str, str], read: ReadFigures) -> None:
        """Measure figures at each export. Figures whose names end in `_total` only increase."""

        def callback_for(name: str) -> Callable[[CallbackOptions], list[Observation]]:
            def values(_options: CallbackOptions) -> list[Observation]:
                return [Observation(value, dict(labels)) for each, value, labels in read() if each == name]

            return values

        for name, meaning in names.items():
            dotted = name.removesuffix("_total").replace("_", ".", 1)
            make = (
                self.meter.create_observable_counter if name.endswith("_total") else self.meter.create_observable_gauge
            )
            make(dotted, [callback_for(name)], description=meaning)

    def count_tokens(self, attributes: Attributes, *, input_tokens: int, output_tokens: int) -> None:
        """Add to the token metric."""
        for kind, count in (("input", input_tokens), ("output", output_tokens)):
            if count:
                self._tokens.record(count, {**attributes, "gen_ai.token.type": kind})


class _SpanOperation(Operation):
    """An operation with a span, from `begin` to `end`."""

    def __init__(
        self, owner: OtelTracer, tracer: trace.Tracer, spec: OperationSpec, parent: context.Context | None
    ) -> None:
        self.captures_content = owner.captures_content
        self._owner = owner
        self._tracer = tracer
        self._spec = spec
        self._parent = parent
        self._span: trace.Span = trace.INVALID_SPAN
        self._token: Any = None
        self._began = 0.0
        self._failure: str | None = None

    def begin(self) -> None:
        spec = self._spec
        self._began = time.monotonic()
        self._span = self._tracer.start_span(
            spec.name, self._parent, kind=_KINDS[spec.kind], attributes=dict(spec.attributes)
        )
        self._token = context.attach(trace.set_span_in_context(self._span, self._parent))

    def set_attributes(self, attributes: Attributes) -> None:
        self._span.set_attributes(dict(attributes))

    def fail(self, kind: str, reason: str = "") -> None:
        self._failure = kind
        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, reason if reason and self.captures_content else None))

    def record_first_chunk(self) -> None:
        passed_s = time.monotonic() - self._began
        self._span.set_attribute("gen_ai.response.time_to_first_chunk", passed_s)
        self._owner.first_chunks.record(passed_s, self._measured())

    def inject(self, meta: dict[str, Any] | None = None) -> dict[str, Any] | None:
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(self._span))
        carried = {key: carrier[key] for key in META_KEYS if key in carrier}
        return {**(meta or {}), **carried} if carried else meta

    def end(self, error: BaseException | None = None) -> None:
        if error is not None and self._failure is None and not isinstance(error, asyncio.CancelledError):
            self.fail(_error_type(error), str(error))
        if self._token is not None:
            context.detach(self._token)
            self._token = None
        if self._spec.duration is not None:
            self._owner.durations[self._spec.duration].record(time.monotonic() - self._began, self._measured())
        self._span.end()

    def _measured(self) -> dict[str, Any]:
        known = self._spec.attributes
        measured: dict[str, Any] = {name: known[name] for name in self._spec.measured if name in known}
        return measured if self._failure is None else {**measured, "error.type": self._failure}


def _extract(meta: Mapping[str, Any] | None) -> context.Context | None:
    """Return the context in the `_meta` of a peer, if any. Ignore values of a wrong type or size."""
    values = {key: meta.get(key) for key in META_KEYS} if meta else {}
    carrier = {
        key: value for key, value in values.items() if isinstance(value, str) and len(value) <= MAX_META_CHARACTERS
    }
    return propagate.extract(carrier) if "traceparent" in carrier else None


def _error_type(error: BaseException) -> str:
    """Return the `error.type` of an error: the code of a JSON-RPC error, or else the name of its class."""
    code = getattr(error, "code", None)
    return str(code) if isinstance(code, int) else type(error).__qualname__
