"""`dragoman store move` for the journals and labels of bridges."""

import json
import os

from tests.bridge.nodes.test_two_nodes import keeping, node_of
from tests.bridge.viewers import bridge_of, join
from tests.commands import start_dragoman


def move(home, address, *options):
    variables = {**os.environ, "DRAGOMAN_HOME": str(home)}
    return start_dragoman("store", "move", "--store", address, *options, "--format", "json", env=variables)


def moved(home, address, *options):
    done = move(home, address, *options)
    assert done.returncode == 0, done.stderr
    journals = json.loads(done.stdout)["journals"]
    return journals["moved"], journals["known"]


async def read(agent, session):
    """Load a session. Return its agent's text and its title in lists."""
    viewer = await join(agent, extensions=True)
    await viewer.load(session)
    [listed] = (await viewer.ask("session/list"))["result"]["sessions"]
    return viewer.said(session), listed["title"]


async def test_journals_and_labels_move_into_a_database_and_back(address, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for home in (one, two):
        home.mkdir(mode=0o700)
    async with bridge_of(one, keeping(tmp_path)) as bridge:
        viewer = await join(bridge.agent(), extensions=True)
        session = await viewer.new()
        await viewer.prompt(session, {"say": "first"}, {"say": "second"})
        await viewer.ask("session/set_title", {"sessionId": session, "title": "Mine"})
        refused = move(one, address)
        assert refused.returncode == 1
        assert "in use" in refused.stderr or "bridge" in refused.stderr
    assert moved(one, address) == (1, 0)
    assert moved(one, address) == (0, 1)
    async with node_of(address, tmp_path, "node") as node:
        assert await read(node, session) == (["first", "second"], "Mine")
    assert moved(two, address, "--to", "files") == (1, 0)
    async with bridge_of(two, keeping(tmp_path)) as bridge:
        assert await read(bridge.agent(), session) == (["first", "second"], "Mine")
