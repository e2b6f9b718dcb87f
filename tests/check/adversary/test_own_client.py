"""Our own client is judged like any other. It has no finding, and exercises the same rules as before."""

import sys
from pathlib import Path

import pytest

from dragoman.check.adversary import ClientOptions, check_client
from dragoman.check.results import CheckReport

RUN = (sys.executable, "-m", "dragoman", "run")
PROGRAM = Path(__file__).with_name("our_client.py")


def silent(report: CheckReport) -> set[str]:
    return {each.id for each in report.results if each.verdict == "not_exercised"}


def blamed(report: CheckReport) -> dict[str, str]:
    return {each.id: each.detail for each in report.results if each.verdict in ("fail", "warn", "error")}


@pytest.mark.extended
async def test_our_client_breaks_no_rule_with_all_features(tmp_path: Path):
    report = await check_client(ClientOptions(command=(sys.executable, str(PROGRAM), str(tmp_path))))
    assert blamed(report) == {}
    assert silent(report) == {
        "ACP-ELICIT-103",  # it supports both elicitation modes
        "ACP-EXT-102",  # it has no custom methods
        "ACP-EXT-105",  # it sends no traces
    }


@pytest.mark.extended
async def test_run_command_breaks_no_rule(tmp_path: Path):
    notes = tmp_path / "notes.txt"
    notes.write_text("a note\n")
    command = (*RUN, "--policy", "all", "--file", str(notes), "go", "--", "{agent}")
    report = await check_client(ClientOptions(command=command))
    assert blamed(report) == {}
    assert report.protocols == [1, 2]
    offers_nothing = {"FS", "TERM", "ELICIT"}
    has_no_use_for = {"AUTH", "CLOSE", "CONFIG", "DELETE", "EXT", "LIST", "LOAD", "MCP", "MODE", "RESUME"}
    rest = {each for each in silent(report) if each.split("-")[1] not in offers_nothing | has_no_use_for}
    # It requests version 2, so its capabilities have the version 2 name. A response with an unknown version is judged
    # by that.
    only_there = {"ACP-INIT-103", "ACP-INIT-109", "ACP-TOOL-101", "ACP-WIRE-115"}
    # Ctrl-C may come before or after the answer to the permission request.
    assert rest - {"ACP-CANCEL-101"} - only_there == {
        "ACP-CONTENT-102",
        "ACP-INIT-106",
        "ACP-NEW-103",
        "ACP-WIRE-107",
    }
