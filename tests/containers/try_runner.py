"""`--run-in docker:IMAGE` with podman as `docker`."""

import json
import os
import signal

import pytest

from tests.attach.rig import rigged
from tests.bridge.viewers import AGENT
from tests.commands import start_dragoman
from tests.containers.podman import names, podman, wait_until

IMAGE = "docker:localhost/dragoman"
STUBBORN = "trap '' TERM; exec 3<&0 </dev/null; while :; do sleep 1; done"
"""A hanging agent, which ignores its stdin and SIGTERM."""


def agent(log, before=""):
    """Return the command of the tests' agent, which is mounted next to the working directory."""
    return ["sh", "-c", f"{before} exec python3 /tests/{AGENT.name} '{json.dumps({'log': str(log)})}'"]


def test_our_agent_answers_from_the_image(tmp_path):
    ended = start_dragoman("run", "--run-in", IMAGE, "--cwd", str(tmp_path), "Who are you?")
    assert (ended.returncode, "dragoman" in ended.stdout) == (0, True), ended.stderr


def test_agent_gets_the_mapped_directory_and_named_variables_only(tmp_path):
    here = tmp_path / "here"
    here.mkdir(mode=0o777)
    here.chmod(0o777)
    command = agent("/work/log", 'printf %s "$A_KEY $ANOTHER" >/work/variable;')
    place = ["--run-in", IMAGE, "--map", f"{here}=/work", "--map", f"{AGENT.parent}=/tests", "--pass-env", "A_KEY"]
    variables = {**os.environ, "A_KEY": "a 'quoted' value", "ANOTHER": "x"}
    prompt = '/steps [{"say": "from there"}]'
    ended = start_dragoman("run", *place, "--cwd", str(here), prompt, "--", *command, env=variables)
    assert (ended.returncode, ended.stdout.strip()) == (0, "from there"), ended.stderr
    assert (here / "variable").read_text() == "a 'quoted' value "
    sent = [json.loads(line) for line in (here / "log").read_text().splitlines()]
    assert [each["params"]["cwd"] for each in sent if each["method"] == "session/new"] == ["/work"]


def test_failed_agents_exit_code_and_stderr_are_reported(tmp_path):
    for command, words in ((["sh", "-c", "echo no key >&2; exit 3"], "no key"), (["no-such-agent"], "no-such-agent")):
        ended = start_dragoman("run", "--run-in", IMAGE, "--cwd", str(tmp_path), "hello", "--", *command)
        assert (ended.returncode, words in ended.stderr) == (1, True), ended.stderr


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("hangs", [False, True])
async def test_container_ends_with_the_bridge_even_if_its_agent_hangs(end, hangs, tmp_path):
    place = ["--run-in", IMAGE, "--map", f"{tmp_path / 'work'}=/work", "--map", f"{AGENT.parent}=/tests"]
    (tmp_path / "work").mkdir()
    (tmp_path / "work").chmod(0o777)
    command = agent("/work/log")
    if hangs:
        command = ["sh", "-c", f"({command[2]}); {STUBBORN}"]
    async with rigged(tmp_path, *place, command=command) as rig, rig.editor() as editor:
        await editor.initialize()
        session = await editor.new(rig.bridge.work)
        await editor.answered(editor.prompt(session, {"say": "from a container"}))
        assert editor.said() == ["from a container"]
        [name] = names("name=dragoman-")
        await rig.bridge.kill(getattr(signal, end))
        wait_until(lambda: not podman("top", name, check=False).stdout)
        if end == "SIGTERM" and not hangs:
            wait_until(lambda: name not in names())
    # podman's process for a container is a child of the bridge. If it is killed, with the bridge or because the agent
    # hangs, an exited container remains.
    podman("rm", "--force", "--time=0", "--ignore", name)
