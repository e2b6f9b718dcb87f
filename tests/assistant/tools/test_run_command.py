import asyncio
import os
import signal
from pathlib import Path

import pytest

from dragoman.agent.turns.prepared_call import Action, TargetChangedError, ToolError
from dragoman.agent.workspace.shell import HEAD_BYTES, LIVE_BYTES, TAIL_BYTES
from dragoman.assistant.tools.run_command import MAX_COMMAND_BYTES
from tests.assistant.tools.working import text_of, working
from tests.proc.processes import alive
from tests.table import each_row
from tests.waiting import until

# ── the shown and approved command ──────────────────────────────────────────────────────────────────


async def test_whole_command_is_shown_and_approved(tmp_path):
    async with working(tmp_path) as here:
        command = "echo one\nrm -rf everything"
        call = await here.prepare("run_command", command=command)
        assert (call.title, call.kind) == ("Run echo one…", "execute")
        assert text_of(call.content) == f"```\n{command}\n```"
        assert call.action == Action("command", command, str(tmp_path))
        assert (call.reads_only, call.inside) == (False, True)
        assert (await here.prepare("run_command", command="make test")).title == "Run make test"
        assert (await here.prepare("run_command", command="x" * 99)).title == f"Run {'x' * 80}…"


async def test_invisible_characters_are_escaped_only_in_the_shown_command(tmp_path):
    async with working(tmp_path) as here:
        command = "echo '\u202egpj.exe'\x1b[8m\n\ttrue"
        call = await here.prepare("run_command", command=command)
        assert call.title == r"Run echo '\u202egpj.exe'\x1b[8m…"
        assert text_of(call.content) == "```\necho '\\u202egpj.exe'\\x1b[8m\n\ttrue\n```"
        assert call.action.what == command


@pytest.mark.parametrize(
    ("command", "words"), [(" \n", "is empty"), ("a\0b", "NUL"), ("x" * (MAX_COMMAND_BYTES + 1), "write a script")]
)
async def test_invalid_command_is_refused_with_a_message(command, words, tmp_path):
    async with working(tmp_path) as here:
        with pytest.raises(ToolError, match=words):
            await here.prepare("run_command", command=command)


# ── how it ends ─────────────────────────────────────────────────────────────────────────────────────


async def test_both_outputs_come_in_order_with_the_exit_code(tmp_path):
    async with working(tmp_path) as here:
        outcome = await here.call("run_command", command="echo one; echo two >&2; echo three; pwd")
        assert outcome.text == f"one\ntwo\nthree\n{tmp_path}\n[exit code 0]"
        assert not outcome.failed
        assert outcome.raw_output["exitCode"] == 0
        assert text_of(outcome.content) == f"```\none\ntwo\nthree\n{tmp_path}\n```"


async def test_failing_command_reports_its_output(tmp_path):
    async with working(tmp_path) as here:
        outcome = await here.call("run_command", command="echo broken; exit 7")
        assert (outcome.text, outcome.failed) == ("broken\n[exit code 7]", True)
        assert (await here.call("run_command", command="no-such-program")).text.endswith("[exit code 127]")
        assert (await here.call("run_command", command="if")).failed


async def test_killed_command_counts_as_failed(tmp_path):
    async with working(tmp_path) as here:
        outcome = await here.call("run_command", command="kill -KILL $$")
        assert (outcome.text, outcome.failed) == ("[no output]\n[killed by SIGKILL]", True)
        assert outcome.raw_output["signal"] == "SIGKILL"


async def test_command_without_output_says_so(tmp_path):
    async with working(tmp_path) as here:
        outcome = await here.call("run_command", command="true")
        assert (outcome.text, outcome.failed, outcome.content) == ("[no output]\n[exit code 0]", False, [])


async def test_command_has_no_input(tmp_path):
    async with working(tmp_path) as here:
        assert (await here.call("run_command", command="cat; read x || echo none")).text == "none\n[exit code 0]"


async def test_command_does_not_inherit_our_secrets(tmp_path, monkeypatch):
    secrets = ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "db_password", "GOOGLE_CREDENTIALS_JSON"]
    for name in secrets:
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("KEYBOARD", "qwerty")
    async with working(tmp_path) as here:
        text = (await here.call("run_command", command="env")).text
        assert "hidden-value" not in text
        assert "KEYBOARD=qwerty" in text
        assert f"PATH={os.environ['PATH']}" in text


async def test_missing_directory_is_reported(tmp_path):
    (tmp_path / "cwd").mkdir()
    async with working(tmp_path / "cwd") as here:
        (tmp_path / "cwd").rmdir()
        with pytest.raises(ToolError, match="could not be started"):
            await here.call("run_command", command="true")


# ── output ──────────────────────────────────────────────────────────────────────────────────────────


async def test_flood_of_output_keeps_its_beginning_and_end(tmp_path):
    async with working(tmp_path) as here:
        outcome = await here.call("run_command", command="echo first; yes x | head -c 20000000; echo; echo last")
        assert outcome.text.startswith("first\nx\n")
        assert "bytes were cut …]" in outcome.text
        assert "\nlast\n[output was cut; to see all of it, redirect it to a file" in outcome.text
        assert len(outcome.text) < HEAD_BYTES + TAIL_BYTES + 300


async def test_endless_output_ends_with_the_timeout(tmp_path):
    async with working(tmp_path, command_timeout_s=0.3) as here:
        outcome = await here.call("run_command", command="yes")
        assert outcome.failed
        assert "[it did not finish in time and was stopped]" in outcome.text


async def test_binary_output_does_no_harm(tmp_path):
    async with working(tmp_path) as here:
        assert (
            await here.call("run_command", command=r"printf '\377\000a'")
        ).text == "\N{REPLACEMENT CHARACTER}\0a\n[exit code 0]"


async def test_output_is_shown_while_the_command_runs(tmp_path):
    os.mkfifo(tmp_path / "gate")
    async with working(tmp_path) as here:
        shown = asyncio.Event()

        async def show(content):
            here.progress.append(content)
            shown.set()

        call = await here.prepare("run_command", command="echo begun; cat gate; echo done")
        running = asyncio.create_task(call.run(show))
        await shown.wait()
        assert text_of(here.progress[0]) == "```\nbegun\n```"
        await asyncio.to_thread(Path(tmp_path / "gate").write_text, "opened\n")
        assert (await running).text == "begun\nopened\ndone\n[exit code 0]"


async def test_intermediate_output_is_short(tmp_path):
    async with working(tmp_path, command_timeout_s=1) as here:
        await here.call("run_command", command="yes")
        assert here.progress
        assert all(len(text_of(content)) < LIVE_BYTES + 100 for content in here.progress)
        assert len(here.progress) < 6


async def test_error_while_showing_ends_the_command(tmp_path):
    async with working(tmp_path) as here:
        call = await here.prepare("run_command", command="echo $$ > pid; echo begun; exec sleep 1000")

        async def show(content):
            raise TimeoutError("the log is gone")

        with pytest.raises(TimeoutError, match="the log is gone"):
            await call.run(show)
        assert not alive(int((tmp_path / "pid").read_text()))


# ── no process is left behind ───────────────────────────────────────────────────────────────────────

STUBBORN = """
trap '' TERM
(trap '' TERM; sleep 1000) & echo $! >> pids
setsid sh -c 'trap "" TERM; echo $$ >> pids; sleep 1000' &
echo $$ >> pids
while [ $(wc -l < pids) -lt 3 ]; do :; done
echo ready > ready
"""


def pids_in(path):
    return [int(line) for line in (path / "pids").read_text().split()]


async def test_background_processes_end_with_the_command(tmp_path):
    async with working(tmp_path) as here:
        outcome = await here.call("run_command", command=f"{STUBBORN}\necho over")
        assert outcome.text == "over\n[exit code 0]"
        assert not any(map(alive, pids_in(tmp_path)))


async def test_cancelled_command_is_killed_with_children_that_ignore_sigterm(tmp_path):
    async with working(tmp_path) as here:
        call = await here.prepare("run_command", command=f"{STUBBORN}\nwait; sleep 1000")
        running = asyncio.create_task(here.run(call))
        await until(lambda: here.children and (tmp_path / "ready").exists())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not any(map(alive, pids_in(tmp_path)))


async def test_timed_out_command_is_killed_with_its_children(tmp_path):
    async with working(tmp_path, command_timeout_s=1) as here:
        outcome = await here.call("run_command", command=f"{STUBBORN}\nwait; sleep 1000")
        assert outcome.failed
        assert outcome.raw_output["timedOut"]
        assert not any(map(alive, pids_in(tmp_path)))


async def test_command_may_clean_up_on_sigterm(tmp_path):
    async with working(tmp_path) as here:
        command = "trap ': > cleaned; exit 1' TERM; : > lock; while :; do sleep 0.01; done"
        running = asyncio.create_task((await here.prepare("run_command", command=command)).run(here.show))
        await until(lambda: here.children and (tmp_path / "lock").exists())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (tmp_path / "cleaned").exists()


@each_row("steps", [*range(12), 20, 40, 80, 160, 320])
async def test_command_cancelled_at_any_step_leaves_no_process(steps, tmp_path):
    async with working(tmp_path) as here:
        call = await here.prepare("run_command", command="echo $$ > pid; exec sleep 1000")
        running = asyncio.create_task(here.run(call))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not here.children
    pid = (tmp_path / "pid").read_text() if (tmp_path / "pid").exists() else ""
    assert not pid or not alive(int(pid))


async def test_commands_run_in_parallel(tmp_path):
    async with working(tmp_path) as here:
        call = await here.prepare("run_command", command="echo $$")
        outcomes = await asyncio.gather(*(here.run(call) for _ in range(5)))
        assert len({outcome.text for outcome in outcomes}) == 5


async def test_unnamed_signal_is_reported_by_number(tmp_path):
    number = signal.SIGRTMIN + 1
    async with working(tmp_path) as here:
        outcome = await here.call("run_command", command=f"kill -{number} $$")
        assert outcome.text.endswith(f"[killed by signal {number}]")


# ── scripts (CVE-2026-32978) ────────────────────────────────────────────────────────────────────────


async def test_script_rewritten_after_approval_does_not_run(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("echo harmless")
    async with working(tmp_path) as here:
        call = await here.prepare("run_command", command="sh ./run.sh")
        script.write_text("touch owned")
        with pytest.raises(TargetChangedError, match="file that the command names"):
            await here.run(call)
        assert not (tmp_path / "owned").exists()


async def test_permanent_approval_does_not_cover_a_replaced_script(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("echo one")
    async with working(tmp_path) as here:
        before = (await here.prepare("run_command", command="sh run.sh")).action
        assert (await here.prepare("run_command", command="sh run.sh")).action == before
        assert before.what == "sh run.sh"
        assert before.where.startswith("sha256:")
        assert before.where.endswith(f" {tmp_path}")
        script.write_text("echo two")
        assert (await here.prepare("run_command", command="sh run.sh")).action != before
        script.unlink()
        assert (await here.prepare("run_command", command="sh run.sh")).action.where == str(tmp_path)


async def test_script_that_appears_after_approval_does_not_run(tmp_path):
    async with working(tmp_path) as here:
        call = await here.prepare("run_command", command="sh run.sh")
        (tmp_path / "run.sh").write_text("touch owned")
        with pytest.raises(TargetChangedError):
            await here.run(call)


async def test_unchanged_script_runs(tmp_path):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "go"
    script.write_text("#!/bin/sh\necho went $1\n")
    script.chmod(0o755)
    async with working(tmp_path) as here:
        assert (await here.call("run_command", command="cd bin && ./go far")).text == "went far\n[exit code 0]"
