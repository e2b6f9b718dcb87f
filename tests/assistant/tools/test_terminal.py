import asyncio

import pytest

from dragoman.agent.turns.prepared_call import ToolError, code
from dragoman.agent.workspace.client_side import OUTPUT_BYTES
from dragoman.protocol import v1
from tests.assistant.tools.working import TERMINAL, Terminals, working

SHOWN = [v1.Terminal(terminal_id="t1")]


def in_terminal(tmp_path, terminals, **options):
    return working(tmp_path, capabilities=TERMINAL, set_up=terminals.set_up, **options)


async def test_command_runs_in_a_terminal_of_the_client(tmp_path):
    terminals = Terminals(output="hello\n")
    async with in_terminal(tmp_path, terminals) as here:
        outcome = await here.call("run_command", command="echo hello")
        assert terminals.created == v1.CreateTerminalRequest(
            session_id="s1",
            command="/bin/sh",
            args=["-c", "echo hello"],
            cwd=str(tmp_path),
            output_byte_limit=OUTPUT_BYTES,
        )
        assert terminals.calls == ["create", "wait", "output", "release"]
        assert here.progress == [SHOWN]
        assert (outcome.text, outcome.content, outcome.failed) == ("hello\n[exit code 0]", [code("hello\n")], False)


@pytest.mark.parametrize("options", [{}, {"ends": False}, {"output": ""}], ids=["ended", "out-of-time", "silent"])
async def test_final_content_of_a_command_names_no_terminal(options, tmp_path):
    async with in_terminal(tmp_path, Terminals(**options), command_timeout_s=0.05) as here:
        outcome = await here.call("run_command", command="true")
        assert not any(isinstance(content, v1.Terminal) for content in outcome.content)


async def test_terminal_sequences_are_removed_from_the_output(tmp_path):
    written = "\x1b]0;title\x07\x1b[1;31mred\x1b[0m\x1b(B\r\nplain\x1b]8;;http://x\x1b\\\r\n100 %\r50 %\x1b]unended"
    async with in_terminal(tmp_path, Terminals(output=written)) as here:
        outcome = await here.call("run_command", command="true")
        assert outcome.content == [code("red\nplain\n100 %\r50 %unended")]


async def test_end_without_code_and_signal_is_unknown_but_not_failed(tmp_path):
    async with in_terminal(tmp_path, Terminals(code=None)) as here:
        outcome = await here.call("run_command", command="true")
        assert (outcome.text, outcome.failed) == ("out\n[exit code unknown: the terminal did not report it]", False)
        assert outcome.raw_output["exitCode"] is outcome.raw_output["signal"] is None


async def test_signal_in_the_terminal_is_a_failure(tmp_path):
    async with in_terminal(tmp_path, Terminals(code=None, signal="SIGTERM")) as here:
        outcome = await here.call("run_command", command="true")
        assert (outcome.text, outcome.failed) == ("out\n[killed by SIGTERM]", True)


async def test_failure_in_the_terminal_is_a_failure(tmp_path):
    async with in_terminal(tmp_path, Terminals(code=3)) as here:
        outcome = await here.call("run_command", command="false")
        assert (outcome.text, outcome.failed) == ("out\n[exit code 3]", True)


async def test_output_cut_by_the_client_is_reported(tmp_path):
    async with in_terminal(tmp_path, Terminals(truncated=True)) as here:
        text = (await here.call("run_command", command="yes")).text
        assert text.startswith("[… the beginning was cut …]\nout\n[output was cut")


async def test_timed_out_command_is_killed_and_its_output_kept(tmp_path):
    terminals = Terminals(ends=False)
    async with in_terminal(tmp_path, terminals, command_timeout_s=0.05) as here:
        outcome = await here.call("run_command", command="sleep 1000")
        assert outcome.failed
        assert outcome.text == "out\n[it did not finish in time and was stopped]"
        assert terminals.calls == ["create", "wait", "kill", "output", "release"]


@pytest.mark.parametrize(
    ("failing", "calls"),
    [
        ("create", ["create"]),
        ("wait", ["create", "wait", "kill", "release"]),
        ("output", ["create", "wait", "output", "release"]),
    ],
)
async def test_client_error_is_quoted_and_the_terminal_released(failing, calls, tmp_path):
    terminals = Terminals(failing=(failing,))
    async with in_terminal(tmp_path, terminals) as here:
        with pytest.raises(ToolError, match=f"could not run it in its terminal: .*no {failing} today"):
            await here.call("run_command", command="true")
        assert terminals.calls == calls


async def test_failed_release_of_a_terminal_changes_nothing(tmp_path):
    async with in_terminal(tmp_path, Terminals(failing=("release", "kill"))) as here:
        assert (await here.call("run_command", command="true")).text == "out\n[exit code 0]"


async def test_client_without_terminals_after_all_is_quoted(tmp_path):
    async with working(tmp_path, capabilities=TERMINAL) as here:
        with pytest.raises(ToolError, match="Method not found"):
            await here.call("run_command", command="true")


@pytest.mark.parametrize(
    ("options", "shown"),
    [({}, [code("out\n")]), ({"output": ""}, []), ({"failing": ["output"]}, [])],
    ids=["reported", "silent", "not-reported"],
)
async def test_cancelled_command_is_killed_and_its_terminal_released(options, shown, tmp_path):
    terminals = Terminals(ends=False, **options)
    async with in_terminal(tmp_path, terminals) as here:
        running = asyncio.create_task(here.call("run_command", command="sleep 1000"))
        await terminals.reached("wait")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert terminals.calls == ["create", "wait", "kill", "output", "release"]
        assert here.progress == [SHOWN, shown]


async def test_terminal_created_after_a_cancel_is_killed_and_released(tmp_path):
    terminals = Terminals(ends=False)
    terminals.may_create.clear()
    async with in_terminal(tmp_path, terminals) as here:
        running = asyncio.create_task(here.call("run_command", command="sleep 1000"))
        await terminals.reached("create")
        running.cancel()
        terminals.may_create.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert terminals.calls == ["create", "kill", "release"]


@pytest.mark.parametrize("failing", [(), ("create",), ("release",)], ids=["well", "no-create", "no-release"])
async def test_command_cancelled_at_any_step_leaves_no_terminal(failing, tmp_path):
    steps, finished = 0, False
    while not finished:
        terminals = Terminals(failing=failing)
        async with in_terminal(tmp_path, terminals) as here:
            call = await here.prepare("run_command", command="true")
            running = asyncio.create_task(here.run(call))
            for _ in range(steps):
                await asyncio.sleep(0)
            finished = running.done()
            running.cancel()
            await asyncio.wait([running])
            running.cancelled() or running.exception()
            made = "create" in terminals.calls and "create" not in failing
            assert ("release" in terminals.calls) == made
        steps += 1
    assert steps > 5


async def test_closed_connection_ends_the_command(tmp_path):
    terminals = Terminals(ends=False)
    async with in_terminal(tmp_path, terminals) as here:
        running = asyncio.create_task(here.call("run_command", command="sleep 1000"))
        await terminals.reached("wait")
        await here.client.connection.__aexit__(None, None, None)
        with pytest.raises(ToolError, match="closed"):
            await running
