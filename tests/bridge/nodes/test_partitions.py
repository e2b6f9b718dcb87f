"""Runs the tests of `partitions` in a separate network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bridge.nodes.machines import OWN_NETWORK, why_no_namespaces

MANY_ROUNDS = 60

soak = pytest.mark.skipif(not os.environ.get("DRAGOMAN_SOAK"), reason="long: set DRAGOMAN_SOAK=1, or run make soak")


def test_nodes_of_these_tests_are_network_namespaces():
    if (reason := why_no_namespaces()) is not None:
        pytest.skip(f"network namespaces cannot be made here ({reason}): nodes are processes behind relays instead")


@pytest.mark.parametrize(
    "rounds", [None, pytest.param(MANY_ROUNDS, marks=[pytest.mark.soak, soak, pytest.mark.timeout(3600)])]
)
def test_updates_are_seen_once_and_one_node_writes(tmp_path, rounds):
    network = OWN_NETWORK if why_no_namespaces() is None else ()
    tests = Path(__file__).with_name("partitions.py")
    command = (sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--basetemp", tmp_path / "inside")
    environment = os.environ if rounds is None else {**os.environ, "ROUNDS": str(rounds)}
    done = subprocess.run(
        [*network, *command, tests], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    if " skipped" in done.stdout:
        pytest.skip(done.stdout)
