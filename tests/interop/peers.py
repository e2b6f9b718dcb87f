"""The commands of the official SDKs' peers. Peers on Node are skipped visibly without Node."""

import shutil
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parent.parent / "peers"

needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is not here: the TypeScript SDK was not tried as a peer"
)


def node_peer(file):
    return pytest.param(["node", str(PEERS / file)], id="typescript-sdk", marks=needs_node)


def python_peer(file):
    return pytest.param([sys.executable, str(PEERS / file)], id="python-sdk")


AGENTS = [python_peer("python_agent.py"), node_peer("typescript_agent.mjs")]
CLIENTS = [python_peer("python_client.py"), node_peer("typescript_client.mjs")]


def python_v2_peer(file):
    """The release of the Python SDK with version 2 conflicts with the other one, so it has its own environment."""
    python = PEERS.parent.parent / ".cache" / "peers" / "acp-v2" / "bin" / "python"
    made = "make .cache/peers/acp-v2/.made installs it"
    missing = pytest.mark.skipif(
        not python.exists(), reason=f"the Python SDK of version 2 was not tried as a peer: {made}"
    )
    return pytest.param([str(python), str(PEERS / file)], id="python-sdk", marks=missing)


V2_AGENTS = [python_v2_peer("python_v2_agent.py"), node_peer("typescript_v2_agent.mjs")]
V2_CLIENTS = [python_v2_peer("python_v2_client.py"), node_peer("typescript_v2_client.mjs")]
