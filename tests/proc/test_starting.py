"""Starting a child: what it gets, what it does not get, and why it could not be started."""

import asyncio
import json
import os
import resource
import signal
import sys

import pytest

from dragoman.errors import CommandNotFound, StartError
from dragoman.proc import EVERYTHING, ProcessExit, Supervisor
from tests.proc.processes import LOOPS, alive, children_of, open_descriptors, python, read_all, run
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
        stdout, stdin = child.take_stdio()
        os.close(stdin)
        shown = json.loads(await read_all(stdout))
        assert await child.wait() == ProcessExit(code=0)
        assert shown["pid"] == child.pid
        return shown


async def test_a_child_inherits_a_short_list_of_variables_and_none_of_our_secrets(monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    monkeypatch.setenv("HOME", "/home/somebody")
    environment = (await show())["env"]
    assert "CANARY" not in environment
    assert environment["HOME"] == "/home/somebody"
    assert set(environment) <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}


async def test_a_child_gets_the_variables_it_is_given_and_those_named_to_be_inherited(monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    monkeypatch.setenv("OTHER", "stays")
    environment = (await show(env={"GIVEN": "a=b\nü", "EMPTY": ""}, inherit=["CANARY", "ABSENT"]))["env"]
    assert {"CANARY": "secret", "GIVEN": "a=b\nü", "EMPTY": ""}.items() <= environment.items()
    assert not {"OTHER", "ABSENT", "HOME"} & environment.keys()


async def test_a_child_inherits_everything_only_when_told(monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    environment = (await show(env={"HOME": "/elsewhere"}, inherit=EVERYTHING))["env"]
    assert environment["CANARY"] == "secret"
    assert environment["HOME"] == "/elsewhere"


async def test_a_child_has_no_descriptor_of_ours_but_its_stdio(tmp_path):
    with open(tmp_path / "file", "w") as file:
        os.set_inheritable(file.fileno(), True)
        assert (await show())["fds"] == [0, 1, 2]
        os.set_inheritable(file.fileno(), False)


async def test_a_child_leads_a_session_of_its_own_with_fresh_signals():
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


async def test_arguments_arrive_as_given():
    arguments = ["", "a b", "$HOME;`id`", "ü\n", os.fsdecode(b"\xff")]
    assert (await show(*arguments))["argv"] == arguments


async def test_arguments_and_environment_of_a_megabyte_arrive():
    arguments = ["x" * 100_000] * 10
    shown = await show(*arguments, env={"BIG": "y" * 100_000})
    assert shown["argv"] == arguments
    assert len(shown["env"]["BIG"]) == 100_000


async def test_a_child_runs_in_the_directory_asked_for(tmp_path):
    assert (await show(cwd=str(tmp_path)))["cwd"] == str(tmp_path)
    assert (await show())["cwd"] == os.getcwd()


async def test_our_own_directory_counts_as_it_is_now(tmp_path, monkeypatch):
    async with Supervisor() as supervisor:
        await supervisor.start(["cat"])
        monkeypatch.chdir(tmp_path)
        child = await supervisor.start(["pwd"])
        assert await read_all(child.take_stdio()[0]) == os.fsencode(tmp_path) + b"\n"


async def test_our_own_directory_being_gone_is_an_error_in_words(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StartError, match="our own working directory is gone"):
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
        stdout, stdin = child.take_stdio()
        os.close(stdin)
        return await read_all(stdout)


async def test_a_bare_name_is_looked_up_in_the_path_given_to_the_child(script):
    assert await output(["greet"], env={"PATH": f"/nowhere:{script.parent}"}) == b"hello\n"
    with pytest.raises(CommandNotFound):
        await output(["greet"])


async def test_an_empty_entry_of_the_path_is_not_the_working_directory(script):
    with pytest.raises(CommandNotFound):
        await output(["greet"], env={"PATH": ":/nowhere:"}, cwd=str(script.parent))


async def test_a_relative_path_is_relative_to_the_directory_of_the_child(script, tmp_path):
    assert await output(["bin/greet"], cwd=str(tmp_path)) == b"hello\n"
    assert await output(["./greet"], cwd=str(script.parent)) == b"hello\n"


async def test_without_a_path_the_usual_places_are_searched():
    assert await output(["echo", "here"], inherit=[]) == b"here\n"


@pytest.mark.parametrize("command", ["no-such-command-anywhere", "/no/such/command", "./nor/this"])
async def test_a_missing_command_is_said_to_be_missing(command):
    with pytest.raises(CommandNotFound, match=f"cannot start {command}: no such command"):
        await output([command, "--token=secret"])


async def test_a_file_that_is_not_executable_says_what_to_do(script):
    script.chmod(0o644)
    for command, path in ((str(script), "/bin"), ("greet", str(script.parent))):
        with pytest.raises(StartError, match=r"chmod \+x") as caught:
            await output([command], env={"PATH": path})
        assert not isinstance(caught.value, CommandNotFound)


async def test_a_directory_is_not_a_command(tmp_path):
    with pytest.raises(StartError, match="may not be executed"):
        await output([str(tmp_path)])


async def test_a_script_without_its_interpreter_is_told_from_a_missing_command(script):
    script.write_text("#!/no/such/interpreter\n")
    with pytest.raises(StartError, match="the interpreter or loader that it names does not exist"):
        await output([str(script)])


async def test_a_script_without_a_first_line_is_refused_in_words(script):
    script.write_text("echo hello\n")
    with pytest.raises(StartError, match="has no #! line"):
        await output([str(script)])


async def test_arguments_too_long_for_the_system_are_refused_in_words():
    with pytest.raises(StartError, match="too long for this system"):
        await output(["echo", "x" * 3_000_000])


async def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(StartError, match=f"{tmp_path}/gone does not exist"):
        await output(["echo"], cwd=str(tmp_path / "gone"))
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match=f"{tmp_path}/file is not a directory"):
        await output(["echo"], cwd=str(tmp_path / "file"))


@pytest.mark.parametrize(
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
async def test_what_no_program_can_be_given_is_refused_without_showing_it(command, options):
    with pytest.raises(StartError) as caught:
        await output(command, **options)
    assert "secret" not in str(caught.value)
    str(caught.value).encode()


async def test_nothing_is_started_outside_of_an_open_supervisor():
    supervisor = Supervisor()
    with pytest.raises(StartError, match="async with"):
        await supervisor.start(["echo"])
    async with supervisor:
        pass
    with pytest.raises(StartError, match="async with"):
        await supervisor.start(["echo"])


async def test_a_start_under_way_when_the_supervisor_closes_leaves_nobody():
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
def test_big_orders_at_once_do_not_hold_each_other_up(loop):
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
                    for descriptor in child.take_stdio():
                        os.close(descriptor)
                await child.stop()
                with pytest.raises(StartError):
                    await supervisor.start(["no-such-command-anywhere"])
                with pytest.raises(StartError):
                    await supervisor.start(["cat"], cwd="/no/such/directory")
            assert open_descriptors() == before

    run(loop, asyncio.sleep(0))  # the first loop of a kind opens what it keeps for all that follow
    before = open_descriptors()
    run(loop, main())
    assert open_descriptors() == before


async def test_a_child_that_ends_by_itself_with_its_stdio_taken_holds_no_descriptor():
    async with Supervisor() as supervisor:
        await (await supervisor.start(["cat"])).stop()
        before = open_descriptors()
        child = await supervisor.start(["cat"])
        for descriptor in child.take_stdio():
            os.close(descriptor)
        await until(lambda: open_descriptors() == before)
        assert child.exit == ProcessExit(code=0)


async def test_no_more_descriptors_is_an_error_in_words():
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


async def test_a_cancelled_start_leaves_nobody_and_no_descriptor():
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


async def test_the_fork_server_gets_none_of_our_environment_and_nothing_secret_in_its_arguments(monkeypatch):
    monkeypatch.setenv("CANARY", "secret")
    async with Supervisor() as supervisor:
        await supervisor.start(["cat"], env={"KEY": "secret"})
        (fork_server,) = children_of(os.getpid())
        for pid in (fork_server, *children_of(fork_server)):
            for what in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{what}", "rb") as file:
                    assert b"secret" not in file.read()


async def test_the_embedding_python_is_found_without_its_site(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/no/such/place")
    monkeypatch.setenv("PYTHONSTARTUP", "/no/such/file")
    assert await output([sys.executable, "-I", "-c", "print(1)"]) == b"1\n"
