"""The command lines and messages for an agent in another place. `make containers` tests with a real engine."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from dragoman.runner import InvalidPlaceError, read_place
from dragoman.runner.paths import PathMap
from dragoman.wire.envelope import encode
from tests.commands import start_dragoman
from tests.table import each_row

TIMEOUT_S = 30
PAIRS = (("/home/me/work", "/srv/work"), ("/home/me/work/deep", "/deep"), ("/home/m\u00fc", "/mu"))


def test_container_gets_directories_and_variable_names():
    place = read_place("docker:an/image:1", ["/a=/b"], ["KEY"])
    start, *rest = place.start_command(["agent", "--acp"])
    assert start == "docker"
    name = rest[rest.index("--name") + 1]
    expected = ["run", "--rm", "--interactive", "--init", "--name", name, "--entrypoint", "sh"]
    expected += ["--volume", "/a:/b", "--env", "KEY", "an/image:1", "-c", rest[-4], "dragoman", "agent", "--acp"]
    assert rest == expected
    assert place.first_line({"KEY": "secret"}) == b""


@pytest.mark.parametrize("name", ["a=b", "a=/b", "a:b", "a:ro", "a,b"])
def test_path_with_a_mount_separator_is_refused(name):
    for mapped in (f"/{name}=/srv", f"/srv=/{name}"):
        with pytest.raises(InvalidPlaceError, match=r"separates paths|is not a directory mapping"):
            read_place("docker:image", [mapped])
    with pytest.raises(InvalidPlaceError, match="separates paths for docker; rename the directory"):
        read_place("docker:image").with_paths((f"/{name}", f"/{name}"))


def test_run_in_an_unmountable_directory_says_why(tmp_path):
    place = tmp_path / "a=b"
    place.mkdir()
    done = start_dragoman("run", "hi", "--run-in", "docker:image", "--cwd", str(place), "--", "agent")
    assert (done.returncode, "separates paths for docker" in done.stderr) == (2, True)


def start_as_in_container(*command, **options):
    """Start the main process of a container in a separate process group, as in a real container."""
    words = read_place("docker:image").start_command(command)
    return subprocess.Popen(["sh", *words[words.index("-c") :]], start_new_session=True, text=True, **options)


def test_container_passes_stdin_and_exit_code():
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_as_in_container("sh", "-c", "cat; exit 7", **pipes) as process:
        assert process.communicate("a\n b\\\n", TIMEOUT_S) == ("a\n b\\\n", "")
    assert process.returncode == 7


def test_container_ends_with_its_agent_despite_open_stdin():
    with start_as_in_container("sh", "-c", "exit 7", stdin=subprocess.PIPE) as process:
        assert process.wait(TIMEOUT_S) == 7


def test_agent_in_a_container_receives_sigterm():
    agent = "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done"
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    # Many at once, because the signal and the exit of the agent race in the shell.
    with ExitStack() as stack:
        containers = [stack.enter_context(start_as_in_container("sh", "-c", agent, **pipes)) for _ in range(50)]
        for process in containers:
            assert process.stdout.readline() == "up\n"
        for process in containers:
            process.terminate()
        assert [process.wait(TIMEOUT_S) for process in containers] == [9] * len(containers)


def test_container_with_a_hanging_agent_ends_after_stdin():
    with start_as_in_container("sh", "-c", "trap '' TERM; sleep 1000", stdin=subprocess.DEVNULL) as process:
        assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    os.killpg(process.pid, signal.SIGKILL)  # the engine kills the remaining processes of a container


def test_ssh_sends_variable_values_on_stdin_only(monkeypatch):
    monkeypatch.setenv("KEY", "it's secret")
    place = read_place("ssh:me@host", [], ["KEY"])
    *options, command = place.start_command(["an agent", "--acp"])
    assert options[-2:] == ["--", "me@host"]
    assert command.endswith(" dragoman 'an agent' --acp")
    assert "secret" not in command
    assert place.first_line(os.environ) == b"""export KEY='it'"'"'s secret'; :\n"""


def test_non_text_value_arrives_unchanged(monkeypatch):
    monkeypatch.setenv("KEY", os.fsdecode(b"caf\xe9"))
    assert read_place("ssh:host", [], ["KEY"]).first_line(os.environ) == b"export KEY='caf\xe9'; :\n"


@pytest.mark.parametrize("given", ["host", "docker:", "ssh:-oProxyCommand=x", "kubernetes:pod"])
def test_invalid_place_is_refused(given):
    with pytest.raises(InvalidPlaceError, match="expected docker:IMAGE, ssh:HOST or sandbox"):
        read_place(given)


def test_a_mapping_and_a_variable_are_checked(monkeypatch):
    monkeypatch.setenv("LINES", "a\nb")
    for mapped, variables in ((["/a"], []), (["/a=b"], []), ([], ["A B"]), ([], ["LINES"])):
        with pytest.raises(InvalidPlaceError):
            read_place("ssh:host", mapped, variables)


@each_row("ascii_only", [True, False])
@each_row(
    ("here", "there"),
    [
        ("/home/me/work", "/srv/work"),
        ("/home/me/work/a", "/srv/work/a"),
        ("/home/me/work/deep/a", "/deep/a"),
        ("/home/me/workshop", "/home/me/workshop"),
        ("/home/m\u00fc/a", "/mu/a"),
    ],
)
def test_paths_are_translated_for_the_other_side(here, there, ascii_only):
    def line(path):
        params = {"cwd": path, "additionalDirectories": [path, "/else"], "text": f'"cwd":"{here}"'}
        message = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}
        return json.dumps(message, ensure_ascii=ascii_only).encode()

    paths = PathMap(PAIRS)
    assert json.loads(paths.to_agent(line(here))) == json.loads(line(there))
    update = {"update": {"locations": [{"path": there}], "content": [{"type": "diff", "path": there}]}}
    back = json.loads(paths.to_client(json.dumps(update, ensure_ascii=ascii_only).encode()))
    assert back["update"]["locations"] == [{"path": here}]


@pytest.mark.parametrize(("here", "there"), [("/mnt", "/"), ("/mnt/srv/a", "/srv/a"), ("/mntx", "/mntx")])
def test_root_directory_may_be_mapped(here, there):
    paths = PathMap((("/mnt", "/"),))
    assert paths.to_agent(encode({"cwd": here})) == encode({"cwd": there})
    if here != "/mntx":
        assert paths.to_client(encode({"path": there})) == encode({"path": here})


def test_client_files_and_terminals_are_not_advertised():
    capabilities = {"fs": {"readTextFile": True}, "terminal": True, "elicitation": {"form": {}}}
    line = json.dumps({"method": "initialize", "params": {"clientCapabilities": capabilities}}).encode()
    assert json.loads(PathMap(()).to_agent(line))["params"] == {"clientCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--run-in", "host"], "expected docker:IMAGE, ssh:HOST or sandbox"),
        (["--run-in", "sandbox"], "use --sandbox workspace"),
        (["--sandbox", "workspace", "--run-in", "docker:image"], "with --run-in sandbox"),
        (["--sandbox", "workspace", "--url", "http://h/acp"], "with --run-in sandbox"),
        (["--run-in", "docker:image", "--writable", "/a"], "--writable is for --run-in sandbox"),
        (["--writable", "/a"], "--map, --pass-env and --writable are for --run-in"),
        (["--map", "/a=/b"], "--map, --pass-env and --writable are for --run-in"),
        (["--run-in", "ssh:host", "--pass-env", "NOT_SET_AT_ALL"], "NOT_SET_AT_ALL is not set"),
        (["--run-in", "ssh:host", "--url", "http://h/acp"], "use only one of them"),
    ],
)
def test_wrong_options_are_reported(arguments, words):
    ended = start_dragoman("run", *arguments, "hello")
    assert ended.returncode == 2
    assert words in ended.stderr


def test_sessions_on_another_machine_need_a_directory_there():
    ended = start_dragoman("serve", "--run-in", "ssh:host", "--", "agent")
    assert ended.returncode == 2
    assert "no working directory on host?" in ended.stderr
    assert sys.executable not in ended.stderr


def test_docker_failure_is_reported_with_its_message(tmp_path, monkeypatch):
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'docker: no such image' >&2\nexit 125\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    ended = start_dragoman("run", "--run-in", "docker:mine", "--cwd", str(tmp_path), "hello")
    assert ended.returncode == 1
    assert ended.stderr == (
        "dragoman run: docker cannot run the image mine; see its message\nits stderr ends:\ndocker: no such image\n"
    )
