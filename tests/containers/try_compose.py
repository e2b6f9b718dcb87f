"""deploy/compose.yaml: a bridge and a Caddy proxy with a certificate from Caddy's authority."""

import pytest

from tests.containers.compose import composed, trust_of
from tests.containers.conversation import ask, open_link
from tests.containers.podman import own, podman, wait_for_link, wait_until

NAME = "agents.example.lan"
BRIDGE, PROXY = "deploy_dragoman_1", "deploy_caddy_1"
ASK_INSIDE = ("--url", "http://127.0.0.1:8421/acp", "--token-file", "/data/bridge/token")


def test_agent_may_work_in_a_host_directory(tmp_path):
    work = own(tmp_path / "work", 1000)
    with composed("compose.yaml", DRAGOMAN_NAME=NAME, DRAGOMAN_WORK=str(work)):
        podman("exec", BRIDGE, "touch", "/work/made")
    assert (work / "made").exists()


@pytest.fixture(scope="module")
def project():
    with composed("compose.yaml", DRAGOMAN_NAME=NAME) as project:
        wait_until(lambda: "root.crt" in podman("exec", PROXY, "find", "/data", "-name", "root.crt").stdout)
        yield project


async def test_logged_link_opens_the_page_over_https(project):
    link = wait_for_link(lambda: project("logs", "dragoman"))
    assert link.startswith(f"https://{NAME}/login?code=")
    assert "<title>" in await open_link(link, verify=trust_of(PROXY))


@pytest.mark.parametrize("scheme", ["https", "wss"])
async def test_prompt_is_answered_through_the_proxy(scheme, project):
    token = podman("exec", BRIDGE, "cat", "/data/bridge/token").stdout.strip()
    _, answer = await ask(f"{scheme}://{NAME}/acp", token, tls=trust_of(PROXY))
    assert "dragoman" in answer


def test_documented_command_runs_inside_the_container(project):
    assert "dragoman" in project("exec", "dragoman", "dragoman", "run", "Who are you?", *ASK_INSIDE)


def test_agent_writes_to_the_volume_and_only_the_proxy_is_published(project):
    podman("exec", BRIDGE, "touch", "/work/made")
    assert podman("port", BRIDGE).stdout == ""
    assert podman("port", PROXY).stdout.startswith("443/tcp")
