"""A bridge under a path prefix, which the proxy keeps or removes."""

import httpx2
import pytest

from dragoman.cli.serve.address import prefix_of
from tests.bridge.front.client import PATIENCE_S
from tests.bridge.front.serving import serving
from tests.bridge.front.sockets import INITIALIZE, call, dial


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        (None, ""),
        ("https://agents.example.org", ""),
        ("https://agents.example.org/", ""),
        ("https://agents.example.org/some/where/", "/some/where"),
        ("https://agents.example.org/some%20where", "/some where"),
    ],
)
def test_prefix_is_the_path_of_the_public_url(url, prefix):
    assert prefix_of(url) == prefix


@pytest.mark.parametrize("prefix", ["/some/where", "/acp"])
async def test_proxy_may_keep_or_remove_the_prefix(tmp_path, prefix):
    hello = {"jsonrpc": "2.0", **INITIALIZE}
    async with (
        serving(tmp_path, prefix=prefix) as served,
        httpx2.AsyncClient(base_url=served.url, headers=served.headers, timeout=PATIENCE_S) as http,
    ):
        for path in ("/acp", f"{prefix}/acp", "/acp/two", f"{prefix}/acp/two"):
            assert (await http.post(path, json=hello)).status_code == 200
            async with dial(served, path) as socket:
                assert "result" in await call(socket, **INITIALIZE)
        for path in ("/", f"{prefix}/"):
            assert "<html" in (await http.get(path)).text
        for path in ("/config.json", f"{prefix}/config.json"):
            assert (await http.get(path)).json()["agents"]
        assert (await http.get(f"{prefix}{prefix}/config.json")).status_code == 404
        assert (await http.post(f"{prefix}s/acp", json=hello)).status_code == 404


async def test_bare_prefix_redirects_to_the_page(tmp_path):
    async with serving(tmp_path, prefix="/some/where") as served, httpx2.AsyncClient(base_url=served.url) as http:
        answer = await http.get("/some/where")
    assert answer.status_code == 307
    assert answer.headers["location"] == "where/"


async def test_service_worker_has_its_policy_and_scope(tmp_path):
    async with serving(tmp_path, prefix="/some/where") as served, httpx2.AsyncClient(base_url=served.url) as http:
        worker = await http.get("/some/where/static/worker/notifications.js")
        other = await http.get("/some/where/static/js/main.js")
        known = await http.get(worker.url, headers={"if-none-match": worker.headers["etag"]})
    assert worker.headers["content-type"].startswith("text/javascript")
    assert "service-worker-allowed" not in worker.headers
    policy = worker.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "sandbox" not in policy, "browsers start no worker in a sandbox"
    assert (known.status_code, known.headers["content-security-policy"]) == (304, policy)
    assert "sandbox" in other.headers["content-security-policy"]
