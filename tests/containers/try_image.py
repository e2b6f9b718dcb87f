"""The image of deploy/Containerfile, run as documented in docs/container.md."""

import pytest

from dragoman.client import connect_url
from tests.containers.conversation import ask, open_link
from tests.containers.podman import at_terminal, names, own, podman, running, wait_for_link, wait_until

ADDRESS = "127.0.0.1:8421"
URL = f"http://{ADDRESS}/acp"
PUBLISHED = ("--publish", f"{ADDRESS}:8421")


@pytest.fixture
def volume():
    yield podman("volume", "create").stdout.strip()


async def test_documented_command_prints_a_link_to_the_page(tmp_path):
    command = f'podman run --rm -it -p {ADDRESS}:8421 -v dragoman:/data -v "$PWD:/work" dragoman'
    own(tmp_path, 1000)
    with at_terminal("sh", "-c", command, cwd=tmp_path) as terminal:
        link = wait_for_link(terminal.read)
        assert link.startswith(f"http://{ADDRESS}/login?code=")
        assert "<title>" in await open_link(link)
        [name] = names()
        _, answer = await ask(URL, podman("exec", name, "cat", "/data/bridge/token").stdout.strip())
        assert "dragoman" in answer
        terminal.type("\x03")
        assert terminal.process.wait(30) == 0, terminal.read()
    wait_until(lambda: not names())


async def test_volume_keeps_sessions_and_token(volume):
    options = (*PUBLISHED, "--volume", f"{volume}:/data")
    with running(*options) as first:
        token = first.token
        session, _ = await ask(URL, token)
    with running(*options) as second:
        assert second.token == token
        async with connect_url(URL, token=token) as agent:
            listed = [each.session_id async for each in agent.list_sessions()]
            assert session in listed
            loaded = await agent.load_session(session, "/work")
            assert "dragoman" in await loaded.ask("Who are you?")


def test_agent_is_not_root_and_writes_only_its_directories():
    with running() as container:
        assert container.exec("id", "--user", "--name") == "dragoman"
        assert container.exec("id", "--user") == "1000"
        assert podman("exec", container.name, "touch", "/work/a", "/data/a").returncode == 0
        for place in ("/opt/dragoman/a", "/etc/a", "/usr/local/bin/a"):
            assert podman("exec", container.name, "touch", place, check=False).returncode != 0
        assert container.exec("git", "--version").startswith("git")
        assert container.exec("rg", "--version").startswith("ripgrep")


def test_sigterm_stops_the_container_within_the_grace_period():
    with running("--init=false") as container:
        podman("stop", "--time=30", container.name)
        state = podman("inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}", container.name).stdout
        assert state.split() == ["0", "false"]


def test_wrong_option_sets_the_containers_exit_code():
    done = podman("run", "--rm", "dragoman", "serve", "--no-such-option", check=False)
    assert done.returncode == 2
    assert "--no-such-option" in done.stderr
    assert podman("run", "--rm", "dragoman", "--version").returncode == 0


async def test_files_are_written_as_their_owner(tmp_path, volume):
    work = own(tmp_path / "work", 2345)
    # Unlike podman, docker adds no line for the user to /etc/passwd.
    options = ("--user", "2345:2345", "--passwd=false", "--volume", f"{volume}:/data", "--volume", f"{work}:/work")
    with running(*PUBLISHED, *options) as container:
        assert container.exec("id", "--user") == "2345"
        await ask(URL, container.token)
        container.exec("touch", "/work/made")
    assert (work / "made").stat().st_uid == 2345
