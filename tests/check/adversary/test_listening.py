"""An adversary that waits for a client that a person drives: over a WebSocket, and as a command."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import InvalidStatus

from dragoman.check.adversary import TOUR_TURNS, ClientOptions, Listening, NeverStarted, check_client, listen
from dragoman.check.results import CheckReport
from dragoman.client import allow_all, connect, connect_url
from dragoman.client.agent import RemoteAgent
from dragoman.errors import DragomanError, StartError

TIMEOUT_S = 30


def blamed(report: CheckReport) -> dict[str, str]:
    return {each.id: each.detail for each in report.results if each.verdict in ("fail", "warn", "error")}


def exercised(report: CheckReport) -> set[str]:
    return {each.id for each in report.results if each.verdict == "pass"}


async def take_tour(agent: RemoteAgent, directory: Path) -> list[str]:
    """Go through the turns, as a person does who cancels when nothing moves; return how each of them ended."""
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
async def test_a_client_takes_the_tour_over_a_websocket(version, tmp_path: Path):
    async with listen(tmp_path, protocols=(version,)) as listening:
        async with connect_url(listening.places[0].url, policy=allow_all()) as agent:
            ends = await take_tour(agent, tmp_path)
        judge_tour(listening, version)
    assert ends == [*["end_turn"] * 4, "cancelled", "RemoteError", "ConnectionClosed"]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_takes_the_tour_with_the_command_in_the_version_that_it_asks_for(version, tmp_path: Path):
    async with listen(tmp_path) as listening:
        [place] = listening.places
        async with connect(place.command, policy=allow_all(), protocol_version=version) as agent:
            ends = await take_tour(agent, tmp_path)
        judge_tour(listening, version)
    assert ends == [*["end_turn"] * 4, "cancelled", "RemoteError", "ProcessDied"]


@pytest.mark.parametrize(("path", "headers"), [("/guessed", {}), (None, {"Origin": "https://example.com"})])
async def test_who_does_not_know_the_address_or_is_a_page_is_turned_away(path, headers, tmp_path: Path):
    async with listen(tmp_path) as listening:
        [place] = listening.places
        url = place.url if path is None else place.url.rpartition("/")[0] + path
        with pytest.raises(InvalidStatus, match="404"):
            async with connect_websocket(url, additional_headers=headers):
                pass
        assert listening.conversations == 0


def test_the_command_waits_until_ctrl_c_and_then_reports(tmp_path: Path):
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


async def test_a_client_that_never_starts_the_agent_is_told_how_to():
    with pytest.raises(NeverStarted, match=r"never started the agent.*\{agent\}.*It said: what agent\?"):
        await check_client(ClientOptions(command=(sys.executable, "-c", "import sys; sys.exit('what agent?')")))


async def test_a_client_that_is_not_there_is_told_as_such():
    with pytest.raises(StartError, match="no-such-client"):
        await check_client(ClientOptions(command=("no-such-client",)))


async def test_no_client_is_left_behind_when_the_check_of_one_fails(tmp_path: Path):
    mark = tmp_path / "pids"
    text = f"import os, time; open({str(mark)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(60)"
    options = ClientOptions(command=(sys.executable, "-c", text), timeout_s=0.5)
    with pytest.raises(NeverStarted):
        await check_client(options)
    for pid in mark.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
