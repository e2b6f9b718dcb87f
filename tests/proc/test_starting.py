"""Starting a child: its environment, and the reasons of a failed start."""

import asyncio
import json
import os
import resource
import signal
import sys

import pytest

from dragoman.errors import CommandNotFoundError, StartError
from dragoman.proc import EVERYTHING, ProcessExit, Supervisor
from tests.proc.processes import LOOPS, alive, children_of, open_descriptors, python, read_all, run
from tests.table import each_row
from tests.waiting import until

SHOW = """
import os, json, signal, sys
print(json.dumps({
    "env": dict(os.environ), "argv": sys.argv[1:], "cwd": os.getcwd(), "pid": os.getpid(),
    "group": os.getpgrp(), "session": os.getsid(0),
    "fds": [fd for fd in range(100) if os.path.exists(f"/proc/self/fd/{fd}")],
    "status": open("/proc/self/status").read(),
}))
"""


async def show(*arguments, **options):
    async with Supervisor() as supervisor:
        child = await supervisor.start([*python(SHOW), *arguments], **options)
        stdout, stdin = child.claim_stdio()
        os.close(stdin)
        shown = json.loads(await read_all(stdout))
        assert await child.wait() == ProcessExit(code=0)
        assert shown["pid"] == child.pid
        return shown


async def test_child_inherits_few_variables_and_no_secrets(monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    monkeypatch.setenv("HOME", "/home/somebody")
    environment = (await show())["env"]
    assert "CANARY" not in environment
    assert environment["HOME"] == "/home/somebody"
    assert set(environment) <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}


async def test_child_receives_given_and_named_variables(monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    monkeypatch.setenv("OTHER", "stays")
    environment = (await show(env={"GIVEN": "a=b\nü", "EMPTY": ""}, inherit=["CANARY", "ABSENT"]))["env"]
    assert {"CANARY": "secret", "GIVEN": "a=b\nü", "EMPTY": ""}.items() <= environment.items()
    assert not {"OTHER", "ABSENT", "HOME"} & environment.keys()


async def test_child_inherits_everything_only_on_request(monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    environment = (await show(env={"HOME": "/elsewhere"}, inherit=EVERYTHING))["env"]
    assert environment["CANARY"] == "secret"
    assert environment["HOME"] == "/elsewhere"


async def test_child_inherits_no_descriptor_except_stdio(tmp_path):
    with open(tmp_path / "file", "w") as file:
        os.set_inheritable(file.fileno(), True)
        assert (await show())["fds"] == [0, 1, 2]
        os.set_inheritable(file.fileno(), False)


async def test_child_leads_a_new_session_with_default_signals():
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        shown = await show()
    finally:
        signal.signal(signal.SIGUSR1, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
    assert shown["pid"] == shown["group"] == shown["session"]
    status = dict(line.split(":\t", 1) for line in shown["status"].splitlines() if ":\t" in line)
    assert int(status["SigBlk"], 16) == 0
    ignored = {number for number in range(1, signal.NSIG) if int(status["SigIgn"], 16) >> (number - 1) & 1}
    of_python, of_libc = {signal.SIGPIPE, signal.SIGXFSZ}, {32, 33}
    assert ignored - of_python - of_libc == set()


async def test_arguments_arrive_unchanged():
    arguments = ["", "a b", "$HOME;`id`", "ü\n", os.fsdecode(b"\xff")]
    assert (await show(*arguments))["argv"] == arguments


async def test_a_megabyte_of_arguments_and_environment_arrives():
    arguments = ["x" * 100_000] * 10
    shown = await show(*arguments, env={"BIG": "y" * 100_000})
    assert shown["argv"] == arguments
    assert len(shown["env"]["BIG"]) == 100_000


async def test_child_runs_in_the_requested_directory(tmp_path):
    assert (await show(cwd=str(tmp_path)))["cwd"] == str(tmp_path)
    assert (await show())["cwd"] == os.getcwd()


async def test_default_directory_is_our_current_one(tmp_path, monkeypatch):
    async with Supervisor() as supervisor:
        await supervisor.start(["cat"])
        monkeypatch.chdir(tmp_path)
        child = await supervisor.start(["pwd"])
        assert await read_all(child.claim_stdio()[0]) == os.fsencode(tmp_path) + b"\n"


async def test_deleted_current_directory_is_reported(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StartError, match="the current working directory no longer exists"):
        await show()
    assert (await show(cwd=str(tmp_path)))["cwd"] == str(tmp_path)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "bin" / "greet"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\necho hello\n")
    path.chmod(0o755)
    return path


async def output(command, **options):
    async with Supervisor() as supervisor:
        child = await supervisor.start(command, **options)
        stdout, stdin = child.claim_stdio()
        os.close(stdin)
        return await read_all(stdout)


async def test_bare_name_is_looked_up_in_the_childs_path(script):
    assert await output(["greet"], env={"PATH": f"/nowhere:{script.parent}"}) == b"hello\n"
    with pytest.raises(CommandNotFoundError):
        await output(["greet"])


async def test_empty_path_entry_does_not_mean_the_working_directory(script):
    with pytest.raises(CommandNotFoundError):
        await output(["greet"], env={"PATH": ":/nowhere:"}, cwd=str(script.parent))


async def test_relative_path_is_relative_to_the_childs_directory(script, tmp_path):
    assert await output(["bin/greet"], cwd=str(tmp_path)) == b"hello\n"
    assert await output(["./greet"], cwd=str(script.parent)) == b"hello\n"


async def test_default_path_is_searched_if_path_is_unset():
    assert await output(["echo", "here"], inherit=[]) == b"here\n"


@pytest.mark.parametrize("command", ["no-such-command-anywhere", "/no/such/command", "./nor/this"])
async def test_missing_command_is_reported(command):
    with pytest.raises(CommandNotFoundError, match=f"cannot start {command}: no such command"):
        await output([command, "--token=secret"])


async def test_file_that_is_not_executable_is_reported_with_the_fix(script):
    script.chmod(0o644)
    for command, path in ((str(script), "/bin"), ("greet", str(script.parent))):
        with pytest.raises(StartError, match=r"chmod \+x") as caught:
            await output([command], env={"PATH": path})
        assert not isinstance(caught.value, CommandNotFoundError)


async def test_a_directory_is_not_a_command(tmp_path):
    with pytest.raises(StartError, match="is not executable"):
        await output([str(tmp_path)])


async def test_missing_interpreter_is_distinguished_from_a_missing_command(script):
    script.write_text("#!/no/such/interpreter\n")
    with pytest.raises(StartError, match="its interpreter or loader does not exist"):
        await output([str(script)])


async def test_script_without_a_shebang_is_reported(script):
    script.write_text("echo hello\n")
    with pytest.raises(StartError, match="has no #! line"):
        await output([str(script)])


async def test_arguments_too_long_for_the_system_are_reported():
    with pytest.raises(StartError, match="too long for this system"):
        await output(["echo", "x" * 3_000_000])


async def test_missing_working_directory_is_named(tmp_path):
    with pytest.raises(StartError, match=f"{tmp_path}/gone does not exist"):
        await output(["echo"], cwd=str(tmp_path / "gone"))
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match=f"{tmp_path}/file is not a directory"):
        await output(["echo"], cwd=str(tmp_path / "file"))


@each_row(
    ("command", "options"),
    [
        ([], {}),
        ([""], {}),
        (["a\0b"], {}),
        (["echo", "a\0b"], {}),
        (["echo", "\ud800"], {}),
        (["echo"], {"cwd": "/a\0b"}),
        (["echo"], {"env": {"NAME": "secret\0"}}),
        (["echo"], {"env": {"NA\0ME": "secret"}}),
        (["echo"], {"env": {"NA=ME": "secret"}}),
        (["echo"], {"env": {"": "secret"}}),
    ],
)
async def test_invalid_arguments_are_refused_without_being_shown(command, options):
    with pytest.raises(StartError) as caught:
        await output(command, **options)
    assert "secret" not in str(caught.value)
    str(caught.value).encode()


async def test_closed_supervisor_starts_nothing():
    supervisor = Supervisor()
    with pytest.raises(StartError, match="async with"):
        await supervisor.start(["echo"])
    async with supervisor:
        pass
    with pytest.raises(StartError, match="async with"):
        await supervisor.start(["echo"])


async def test_start_that_races_with_closing_leaves_no_process():
    async with Supervisor() as supervisor:
        starts = [asyncio.create_task(supervisor.start(["cat"])) for _ in range(10)]
        await asyncio.sleep(0)
    results = await asyncio.gather(*starts, return_exceptions=True)
    assert all(isinstance(result, StartError) for result in results)
    assert not children_of(os.getpid())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_hundred_children_start_at_once(loop):
    async def main():
        async with Supervisor() as supervisor:
            children = await asyncio.gather(*(supervisor.start(["cat"]) for _ in range(100)))
            pids = [child.pid for child in children]
            assert len({*pids}) == 100
            assert all(map(alive, pids))
        assert [child.exit for child in children] == [ProcessExit(code=0)] * 100
        assert not any(map(alive, pids))

    run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_concurrent_large_orders_do_not_block_each_other(loop):
    async def main():
        async with Supervisor() as supervisor:
            big = ["x" * 100_000] * 15
            children = await asyncio.gather(*(supervisor.start(["cat", *big]) for _ in range(8)))
            assert [await child.wait() for child in children] == [ProcessExit(code=1)] * 8

    run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_descriptors_do_not_leak(loop):
    async def main():
        async with Supervisor() as supervisor:
            await (await supervisor.start(["cat"])).stop()
            before = open_descriptors()
            for number in range(50):
                child = await supervisor.start(["cat"])
                if number % 2:
                    for descriptor in child.claim_stdio():
                        os.close(descriptor)
                await child.stop()
                with pytest.raises(StartError):
                    await supervisor.start(["no-such-command-anywhere"])
                with pytest.raises(StartError):
                    await supervisor.start(["cat"], cwd="/no/such/directory")
            assert open_descriptors() == before

    run(loop, asyncio.sleep(0))  # the first loop of each kind opens descriptors that later loops share
    before = open_descriptors()
    run(loop, main())
    assert open_descriptors() == before


async def test_child_that_exits_after_its_stdio_was_claimed_holds_no_descriptor():
    async with Supervisor() as supervisor:
        await (await supervisor.start(["cat"])).stop()
        before = open_descriptors()
        child = await supervisor.start(["cat"])
        for descriptor in child.claim_stdio():
            os.close(descriptor)
        await until(lambda: open_descriptors() == before)
        assert child.exit == ProcessExit(code=0)


async def test_running_out_of_descriptors_is_reported():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Supervisor() as supervisor:
        await supervisor.start(["cat"])
        before = open_descriptors()
        free = [number for number in range(before + 8) if not os.path.exists(f"/proc/self/fd/{number}")]
        for lowest_refused in free[:8]:
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_refused, limits[1]))
            try:
                with pytest.raises(StartError, match="too many files are open"):
                    await supervisor.start(["cat"])
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert open_descriptors() == before


async def test_cancelled_start_leaves_no_process_or_descriptor():
    async with Supervisor() as supervisor:
        await (await supervisor.start(["cat"])).stop()
        (fork_server,) = children_of(os.getpid())
        before = open_descriptors()
        for turns in range(30):
            start = asyncio.create_task(supervisor.start(["cat"]))
            for _ in range(turns):
                await asyncio.sleep(0.0002)
            start.cancel()
            for result in await asyncio.gather(start, return_exceptions=True):
                if not isinstance(result, BaseException):
                    await result.stop()
        await until(lambda: children_of(fork_server) == [])
        assert open_descriptors() == before


async def test_fork_server_receives_no_secrets(monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    async with Supervisor() as supervisor:
        await supervisor.start(["cat"], env={"KEY": "secret"})
        (fork_server,) = children_of(os.getpid())
        for pid in (fork_server, *children_of(fork_server)):
            for what in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{what}", "rb") as file:
                    assert b"secret" not in file.read()


async def test_same_python_starts_with_a_broken_pythonpath(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/no/such/place")
    monkeypatch.setenv("PYTHONSTARTUP", "/no/such/file")
    assert await output([sys.executable, "-I", "-c", "print(1)"]) == b"1\n"
