"""An adversary that waits for a client operated by the user: over a WebSocket, and as a command."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import InvalidStatus

from dragoman.check.adversary import TOUR_TURNS, ClientNotStartedError, ClientOptions, Listening, check_client, listen
from dragoman.check.results import CheckReport
from dragoman.client import connect, connect_url
from dragoman.client.agent import AgentConnection
from dragoman.client.policies import allow_all
from dragoman.errors import DragomanError, StartError

TIMEOUT_S = 30


def blamed(report: CheckReport) -> dict[str, str]:
    return {each.id: each.detail for each in report.results if each.verdict in ("fail", "warn", "error")}


def exercised(report: CheckReport) -> set[str]:
    return {each.id for each in report.results if each.verdict == "pass"}


async def play_tour(agent: AgentConnection, directory: Path) -> list[str]:
    """Play the turns like a user who cancels when nothing happens. Return how each turn ended."""
    ends: list[str] = []
    session = await agent.new_session(directory)
    for _ in TOUR_TURNS:
        try:
            async for event in session.prompt("anything"):
                if getattr(event, "text", "") == "Working on it. ":
                    session.cancel()
                if hasattr(event, "stop_reason"):
                    ends.append(event.stop_reason)
        except DragomanError as error:
            ends.append(type(error).__name__)
    return ends


def judge_tour(listening: Listening, version: int) -> None:
    report = listening.report()
    assert listening.conversations == 1
    assert report.protocols == [version]
    assert blamed(report) == {}
    known = {"ACP-INIT-101", "ACP-PERM-101", "ACP-WIRE-112", "ACP-WIRE-114", "ACP-WIRE-125"}
    assert known | ({"ACP-INIT-108"} if version == 2 else set()) <= exercised(report)


@pytest.mark.parametrize("version", [1, 2])
async def test_client_plays_the_tour_over_a_websocket(version, tmp_path: Path):
    async with listen(tmp_path, protocols=(version,)) as listening:
        async with connect_url(listening.places[0].url, policy=allow_all()) as agent:
            ends = await play_tour(agent, tmp_path)
        judge_tour(listening, version)
    assert ends == [*["end_turn"] * 4, "cancelled", "RemoteError", "ConnectionClosedError"]


@pytest.mark.parametrize("version", [1, 2])
async def test_client_plays_the_tour_with_the_command(version, tmp_path: Path):
    async with listen(tmp_path) as listening:
        [place] = listening.places
        async with connect(place.command, policy=allow_all(), protocol_version=version) as agent:
            ends = await play_tour(agent, tmp_path)
        judge_tour(listening, version)
    assert ends == [*["end_turn"] * 4, "cancelled", "RemoteError", "ProcessDiedError"]


@pytest.mark.parametrize(("path", "headers"), [("/guessed", {}), (None, {"Origin": "https://example.com"})])
async def test_unknown_paths_and_web_pages_are_refused(path, headers, tmp_path: Path):
    async with listen(tmp_path) as listening:
        [place] = listening.places
        url = place.url if path is None else place.url.rpartition("/")[0] + path
        with pytest.raises(InvalidStatus, match="404"):
            async with connect_websocket(url, additional_headers=headers):
                pass
        assert listening.conversations == 0


def test_command_reports_after_ctrl_c(tmp_path: Path):
    command = [
        sys.executable,
        "-m",
        "dragoman",
        "check",
        "client",
        "--listen",
        "--protocol",
        "both",
        "--format",
        "json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as checking:
        try:
            assert checking.stderr is not None
            for version in (1, 2):
                words, _, agent = checking.stderr.readline().partition(": ")
                assert words.endswith(f"version {version}")
                assert checking.stderr.readline().partition(": ")[2].strip().startswith("ws://127.0.0.1:")
                run = [sys.executable, "-m", "dragoman", "run", "--policy", "all", "anything", "--", *agent.split()]
                subprocess.run(run, cwd=tmp_path, capture_output=True, timeout=TIMEOUT_S, check=True)
            checking.send_signal(signal.SIGINT)
            out, _ = checking.communicate(timeout=TIMEOUT_S)
        finally:
            checking.kill()
    report = json.loads(out)
    assert checking.returncode == 0
    assert report["summary"]["fail"] == 0
    passed = [each["protocol"] for each in report["results"] if each["verdict"] == "pass"]
    assert passed.count(1) > 20
    assert passed.count(2) > 20


async def test_client_that_never_starts_the_agent_gets_instructions():
    words = r"did not start the agent.*\{agent\}.*Its stderr ends: what agent\?"
    with pytest.raises(ClientNotStartedError, match=words):
        await check_client(ClientOptions(command=(sys.executable, "-c", "import sys; sys.exit('what agent?')")))


async def test_missing_client_command_is_reported():
    with pytest.raises(StartError, match="no-such-client"):
        await check_client(ClientOptions(command=("no-such-client",)))


async def test_failed_check_leaves_no_client_process(tmp_path: Path):
    mark = tmp_path / "pids"
    text = f"import os, time; open({str(mark)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(60)"
    options = ClientOptions(command=(sys.executable, "-c", text), timeout_s=0.5)
    with pytest.raises(ClientNotStartedError):
        await check_client(options)
    for pid in mark.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
