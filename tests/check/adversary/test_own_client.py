"""Our own client, judged as a stranger's: no finding, and nothing that was exercised before is lost unseen."""

import sys
from pathlib import Path

from dragoman.check.adversary import ClientOptions, check_client
from dragoman.check.results import CheckReport

RUN = (sys.executable, "-m", "dragoman", "run")
PROGRAM = Path(__file__).with_name("our_client.py")


def silent(report: CheckReport) -> set[str]:
    return {each.id for each in report.results if each.verdict == "not_exercised"}


def blamed(report: CheckReport) -> dict[str, str]:
    return {each.id: each.detail for each in report.results if each.verdict in ("fail", "warn", "error")}


async def test_our_client_keeps_every_rule_when_it_does_all_it_can(tmp_path: Path):
    report = await check_client(ClientOptions(command=(sys.executable, str(PROGRAM), str(tmp_path))))
    assert blamed(report) == {}
    assert silent(report) == {
        "ACP-ELICIT-103",  # it takes forms and pages, and nothing else can be asked for
        "ACP-EXT-102",  # it has no methods of its own
        "ACP-EXT-105",  # nor does it send traces
    }


async def test_a_run_in_the_shell_keeps_every_rule(tmp_path: Path):
    notes = tmp_path / "notes.txt"
    notes.write_text("a note\n")
    command = (*RUN, "--policy", "all", "--file", str(notes), "go", "--", "{agent}")
    report = await check_client(ClientOptions(command=command))
    assert blamed(report) == {}
    assert report.protocols == [1, 2]
    offers_nothing = {"FS", "TERM", "ELICIT"}
    has_no_use_for = {"AUTH", "CLOSE", "CONFIG", "DELETE", "EXT", "LIST", "LOAD", "MCP", "MODE", "RESUME"}
    rest = {each for each in silent(report) if each.split("-")[1] not in offers_nothing | has_no_use_for}
    # It asks for version 2, and the answer with a version that nobody knows is judged by that.
    only_there = {"ACP-INIT-103", "ACP-TOOL-101", "ACP-WIRE-115"}
    # Whether Ctrl-C comes before the answer to the question is for the two processes to settle.
    assert rest - {"ACP-CANCEL-101"} - only_there == {
        "ACP-CONTENT-102",
        "ACP-INIT-106",
        "ACP-NEW-103",
        "ACP-WIRE-107",
    }
