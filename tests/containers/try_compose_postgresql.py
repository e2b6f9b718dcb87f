"""deploy/compose-postgresql.yaml: two nodes with one PostgreSQL and a Caddy proxy."""

import json
import re
import shutil
import subprocess

import pytest

from dragoman.client import connect_url
from dragoman.errors import RemoteError
from tests.containers.compose import composed, trust_of
from tests.containers.engine import ROOT
from tests.containers.podman import podman, wait_until

FILE = "compose-postgresql.yaml"
URL = "https://localhost/acp"
NODES = ("dragoman_node_1", "dragoman_node_2")
PROXY = "dragoman_proxy_1"
WORK = "/home/dragoman/projects"
INSIDE = ("--url", "http://127.0.0.1:8421/acp", "--token-file", "/home/dragoman/.dragoman/bridge/token")


def make_secrets(directory):
    """Run the commands in the file's header, except the one that starts the project."""
    head = (directory / FILE).read_text().partition("\nname:")[0]
    commands = re.findall(r"^#   (.*)", head, re.MULTILINE)
    assert commands.pop() == f"docker compose --file {FILE} up --build"
    subprocess.run(["sh", "-e"], input="\n".join(commands), text=True, cwd=directory, check=True)


def listens(node):
    probe = "import socket; socket.create_connection(('127.0.0.1', 8421))"
    return podman("exec", node, "python3", "-c", probe, check=False).returncode == 0


@pytest.fixture(scope="module")
def token(tmp_path_factory):
    directory = tmp_path_factory.mktemp("deploy")
    shutil.copy(ROOT / "deploy" / FILE, directory)
    make_secrets(directory)
    # podman 4.3 cannot wait for a healthy container, and does not start indirect dependents. Without dependencies, a
    # container that starts too early exits and is restarted.
    with composed(FILE, "--no-deps", directory=directory):
        for node in NODES:
            wait_until(lambda node=node: listens(node))
        yield re.search("^TOKEN=(.*)", (directory / "nodes.env").read_text(), re.MULTILINE)[1]


def run_inside(node, *arguments):
    """Send a prompt directly to one node and return the result."""
    words = ("dragoman", "run", *INSIDE, "--cwd", WORK, "--format", "json", *arguments)
    return json.loads(podman("exec", node, *words).stdout)


async def test_session_of_one_node_is_used_through_the_other(token):
    first = run_inside(NODES[0], "Who are you?")
    second = run_inside(NODES[1], "--session", first["session_id"], "What can you do?")
    assert (first["session_id"], second["stop_reason"]) == (second["session_id"], "end_turn")


async def test_session_continues_when_its_nodes_container_is_killed(token):
    trust = trust_of(PROXY)
    session = run_inside(NODES[0], "Who are you?")["session_id"]
    podman("kill", "--signal=KILL", NODES[0])
    async with connect_url(URL, token=token, tls=trust) as agent:
        try:
            loaded = await agent.load_session(session, WORK)
        except RemoteError as error:  # the killed node had the request, and its lease has ended now
            assert "ask again" in str(error)
            loaded = await agent.load_session(session, WORK)
        assert "dragoman" in await loaded.ask("Who are you?")
