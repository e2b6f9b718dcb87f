"""The official SDKs' peers as commands; the ones on Node are skipped, visibly, where Node is not."""

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
