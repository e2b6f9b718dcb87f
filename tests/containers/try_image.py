"""The image of deploy/Containerfile, run as docs/container.md says."""

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


async def test_the_command_of_the_documentation_shows_a_link_that_opens_the_page(tmp_path):
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


async def test_the_volume_keeps_sessions_and_the_token_for_the_next_container(volume):
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


def test_the_agent_is_no_root_and_may_write_in_its_own_places_alone():
    with running() as container:
        assert container.exec("id", "--user", "--name") == "dragoman"
        assert container.exec("id", "--user") == "1000"
        assert podman("exec", container.name, "touch", "/work/a", "/data/a").returncode == 0
        for place in ("/opt/dragoman/a", "/etc/a", "/usr/local/bin/a"):
            assert podman("exec", container.name, "touch", place, check=False).returncode != 0
        assert container.exec("git", "--version").startswith("git")
        assert container.exec("rg", "--version").startswith("ripgrep")


def test_sigterm_ends_it_in_order_within_the_grace_period():
    with running("--init=false") as container:
        podman("stop", "--time=30", container.name)
        state = podman("inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}", container.name).stdout
        assert state.split() == ["0", "false"]


def test_a_wrong_option_ends_the_container_with_the_code_of_the_command():
    done = podman("run", "--rm", "dragoman", "serve", "--no-such-option", check=False)
    assert done.returncode == 2
    assert "--no-such-option" in done.stderr
    assert podman("run", "--rm", "dragoman", "--version").returncode == 0


async def test_files_of_another_owner_are_written_as_that_owner(tmp_path, volume):
    work = own(tmp_path / "work", 2345)
    # docker, unlike podman, makes no line for the user in /etc/passwd.
    options = ("--user", "2345:2345", "--passwd=false", "--volume", f"{volume}:/data", "--volume", f"{work}:/work")
    with running(*PUBLISHED, *options) as container:
        assert container.exec("id", "--user") == "2345"
        await ask(URL, container.token)
        container.exec("touch", "/work/made")
    assert (work / "made").stat().st_uid == 2345
