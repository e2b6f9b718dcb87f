"""Many sessions at once: each viewer sees its own messages once and in order, whatever other viewers do."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.bridge.guard.serving import serving
from tests.bridge.load.crowd import Crowd, Plan

AGENT = Path(__file__).parent / "agents" / "tagging_agent.py"


def play(home, plan):
    with serving(home, agent=[sys.executable, str(AGENT)]) as served:
        report = Crowd(served.acp.replace("http://", "ws://"), served.token, served.process.pid, plan).run()
        assert served.stop() == 0
    written = home / "load.json"
    written.write_text(json.dumps(report, indent=1))
    print(written, written.read_text())
    return report


def test_a_hundred_sessions_lose_and_mix_nothing(tmp_path):
    plan = Plan(sessions=100, chunks=20, every_s=0.1, returners=10, idlers=5, loud_chunks=100)
    report = play(tmp_path, plan)
    assert report["chunks"] == 100 * 20 + 100
    assert report["returns"] == 30


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("DRAGOMAN_SOAK"), reason="long: set DRAGOMAN_SOAK=1, or run make soak")
@pytest.mark.timeout(600)
def test_a_thousand_sessions_lose_and_mix_nothing(tmp_path):
    plan = Plan(sessions=1_000, chunks=100, every_s=0.5, returners=20, idlers=20, loud_chunks=300)
    report = play(tmp_path, plan)
    assert report["chunks"] == 1_000 * 100 + 300
    assert report["returns"] == 60
