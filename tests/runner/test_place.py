"""The command lines and the lines that go to an agent elsewhere; `make containers` has a real engine."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from dragoman.runner import BadPlace, read_place
from dragoman.runner.paths import PathMap
from dragoman.wire.envelope import encode
from tests.commands import dragoman

TIMEOUT_S = 30
PAIRS = (("/home/me/work", "/srv/work"), ("/home/me/work/deep", "/deep"), ("/home/m\u00fc", "/mu"))


def test_a_container_gets_the_directories_and_the_names_of_variables():
    place = read_place("docker:an/image:1", ["/a=/b"], ["KEY"])
    start, *rest = place.start_command(["agent", "--acp"])
    assert start == "docker"
    name = rest[rest.index("--name") + 1]
    expected = ["run", "--rm", "--interactive", "--init", "--name", name, "--entrypoint", "sh"]
    expected += ["--volume", "/a:/b", "--env", "KEY", "an/image:1", "-c", rest[-4], "dragoman", "agent", "--acp"]
    assert rest == expected
    assert place.first_line({"KEY": "secret"}) == b""


def start_as_in_container(*command, **options):
    """Start the main process of a container, which has a group of its own there too."""
    words = read_place("docker:image").start_command(command)
    return subprocess.Popen(["sh", *words[words.index("-c") :]], start_new_session=True, text=True, **options)


def test_an_agent_in_a_container_gets_stdin_as_it_is_and_its_code_is_that_of_the_container():
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_as_in_container("sh", "-c", "cat; exit 7", **pipes) as process:
        assert process.communicate("a\n b\\\n", TIMEOUT_S) == ("a\n b\\\n", "")
    assert process.returncode == 7


def test_a_container_ends_with_its_agent_though_stdin_goes_on():
    with start_as_in_container("sh", "-c", "exit 7", stdin=subprocess.PIPE) as process:
        assert process.wait(TIMEOUT_S) == 7


def test_an_agent_in_a_container_gets_sigterm_and_may_end_by_itself():
    agent = "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done"
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    # Many at once, because the signal and the end of the agent race in the shell.
    with ExitStack() as stack:
        containers = [stack.enter_context(start_as_in_container("sh", "-c", agent, **pipes)) for _ in range(50)]
        for process in containers:
            assert process.stdout.readline() == "up\n"
        for process in containers:
            process.terminate()
        assert [process.wait(TIMEOUT_S) for process in containers] == [9] * len(containers)


def test_a_container_whose_agent_hangs_ends_after_the_end_of_stdin():
    with start_as_in_container("sh", "-c", "trap '' TERM; sleep 1000", stdin=subprocess.DEVNULL) as process:
        assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    os.killpg(process.pid, signal.SIGKILL)  # what the engine does with the rest of a container


def test_another_machine_gets_the_values_on_stdin_and_never_as_arguments(monkeypatch):
    monkeypatch.setenv("KEY", "it's secret")
    place = read_place("ssh:me@host", [], ["KEY"])
    *options, command = place.start_command(["an agent", "--acp"])
    assert options[-2:] == ["--", "me@host"]
    assert command.endswith(" dragoman 'an agent' --acp")
    assert "secret" not in command
    assert place.first_line(os.environ) == b"""export KEY='it'"'"'s secret'; :\n"""


def test_a_value_that_is_no_text_arrives_byte_by_byte(monkeypatch):
    monkeypatch.setenv("KEY", os.fsdecode(b"caf\xe9"))
    assert read_place("ssh:host", [], ["KEY"]).first_line(os.environ) == b"export KEY='caf\xe9'; :\n"


@pytest.mark.parametrize("given", ["host", "docker:", "ssh:-oProxyCommand=x", "kubernetes:pod"])
def test_a_place_that_is_none_is_refused(given):
    with pytest.raises(BadPlace, match="expected docker:IMAGE or ssh:HOST"):
        read_place(given)


def test_a_mapping_and_a_variable_are_checked(monkeypatch):
    monkeypatch.setenv("LINES", "a\nb")
    for mapped, variables in ((["/a"], []), (["/a=b"], []), ([], ["A B"]), ([], ["LINES"])):
        with pytest.raises(BadPlace):
            read_place("ssh:host", mapped, variables)


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("/home/me/work", "/srv/work"),
        ("/home/me/work/a", "/srv/work/a"),
        ("/home/me/work/deep/a", "/deep/a"),
        ("/home/me/workshop", "/home/me/workshop"),
        ("/home/m\u00fc/a", "/mu/a"),
    ],
)
def test_paths_are_put_into_the_words_of_the_other_side(here, there, ascii_only):
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
def test_a_whole_machine_may_be_mapped(here, there):
    paths = PathMap((("/mnt", "/"),))
    assert paths.to_agent(encode({"cwd": here})) == encode({"cwd": there})
    if here != "/mntx":
        assert paths.to_client(encode({"path": there})) == encode({"path": here})


def test_the_files_and_commands_of_the_client_are_not_offered():
    capabilities = {"fs": {"readTextFile": True}, "terminal": True, "elicitation": {"form": {}}}
    line = json.dumps({"method": "initialize", "params": {"clientCapabilities": capabilities}}).encode()
    assert json.loads(PathMap(()).to_agent(line))["params"] == {"clientCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--in", "host"], "expected docker:IMAGE or ssh:HOST"),
        (["--map", "/a=/b"], "--map and --env are for --in"),
        (["--in", "ssh:host", "--env", "NOT_SET_AT_ALL"], "NOT_SET_AT_ALL is not set here"),
        (["--in", "ssh:host", "--url", "http://h/acp"], "leave one of them out"),
    ],
)
def test_wrong_options_are_told(arguments, words):
    ended = dragoman("run", *arguments, "hello")
    assert ended.returncode == 2
    assert words in ended.stderr


def test_sessions_on_another_machine_need_a_directory_there():
    ended = dragoman("serve", "--in", "ssh:host", "--", "agent")
    assert ended.returncode == 2
    assert "where do sessions begin on host?" in ended.stderr
    assert sys.executable not in ended.stderr


def test_docker_that_cannot_start_the_image_is_told_with_its_own_words(tmp_path, monkeypatch):
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'docker: no such image' >&2\nexit 125\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    ended = dragoman("run", "--in", "docker:mine", "--cwd", str(tmp_path), "hello")
    assert ended.returncode == 1
    assert ended.stderr == (
        "dragoman run: docker cannot run the image mine, and has said why\nits stderr ends:\ndocker: no such image\n"
    )
