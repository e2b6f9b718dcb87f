"""The bridge's metrics at /metrics, for the owner and the metrics token, read by the official parser."""

import http.client
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.bridge.guard.serving import serving
from tests.commands import DRAGOMAN
from tests.telemetry.collector import attributes, collecting
from tests.waiting import wait_until


def get(served, *headers, method="GET", path="/metrics"):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    try:
        connection.request(method, path, headers=dict(header.split(": ", 1) for header in headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.getheader("Content-Type")
    finally:
        connection.close()


def figures(text):
    families = list(text_string_to_metric_families(text))
    assert all(family.documentation and family.type in ("gauge", "counter") for family in families)
    return {
        (sample.name, *sorted(sample.labels.items())[1:]): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
def served(home):
    with serving(home) as served:
        yield served


def test_metrics_cover_agent_sessions_and_traffic(served, home):
    subprocess.run(
        [*DRAGOMAN, "run", "hello", "--url", served.acp, "--token-file", str(home / "bridge" / "token")],
        check=True,
        capture_output=True,
        timeout=60,
    )
    status, text, kind = get(served, served.bearer)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = figures(text)
    assert found["dragoman_agent_up",] == 1
    assert found["dragoman_agent_starts_total",] == 1
    assert found["dragoman_sessions", ("phase", "live")] == 1
    assert found["dragoman_sessions", ("phase", "gone")] == 0
    assert found["dragoman_questions_open",] == 0
    assert found["dragoman_agent_bytes_total", ("direction", "from_agent")] > 100
    assert found["dragoman_agent_messages_total", ("direction", "to_agent")] >= 3


def test_metrics_token_only_opens_metrics(served, home):
    path = home / "bridge" / "metrics-token"
    assert path.stat().st_mode & 0o077 == 0
    bearer = f"Authorization: Bearer {path.read_text().strip()}"
    assert get(served, bearer)[0] == 200
    assert get(served, bearer, method="POST")[0] == 405
    assert [get(served, bearer, path=path)[0] for path in ("/acp", "/config.json", "/link")] == [401, 401, 401]
    assert get(served)[0] == 401
    assert get(served, "Authorization: Bearer " + "x" * 43)[0] == 401
    assert get(served, bearer, "Host: evil.example")[0] in (400, 403, 421)
    assert get(served, bearer, "Origin: https://evil.example")[0] == 403


def test_bridge_exports_the_same_metrics_by_opentelemetry(home, monkeypatch):
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
        with serving(home):
            wait_until(lambda: collector.points("dragoman.sessions"))
            assert {attributes(point)["phase"] for point in collector.points("dragoman.sessions")} >= {"live", "asleep"}
            assert collector.points("dragoman.viewers")[0].as_int == 0
