"""An OTLP collector over HTTP on loopback, which keeps all data that it receives."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """The spans by name and the points of each metric, from all processes that sent some."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.bodies = []
        self.services = set()
        self._lock = threading.Lock()
        self._spans = []
        self._points = {}

    def receive(self, path, body):
        with self._lock:
            self.bodies.append(body)
            if path == "/v1/traces":
                for each in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self._add_service(each.resource)
                    self._spans += [span for scope in each.scope_spans for span in scope.spans]
            elif path == "/v1/metrics":
                for each in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    for metric in (metric for scope in each.scope_metrics for metric in scope.metrics):
                        points = getattr(metric, metric.WhichOneof("data")).data_points
                        self._points.setdefault(metric.name, []).extend(points)

    def _add_service(self, resource):
        self.services |= {each.value.string_value for each in resource.attributes if each.key == "service.name"}

    def spans(self, name):
        with self._lock:
            return [span for span in self._spans if span.name == name]

    def span(self, name):
        [span] = self.spans(name)
        return span

    def points(self, name):
        with self._lock:
            return list(self._points.get(name, []))


def attributes(thing):
    """Return the attributes of a span or a point as Python values."""

    def value(given):
        kind = given.WhichOneof("value")
        if kind == "array_value":
            return [value(each) for each in given.array_value.values]
        return getattr(given, kind)

    return {each.key: value(each.value) for each in thing.attributes}


@contextmanager
def collecting():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            collector.receive(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
