"""Nodes that are killed, hang or stop, and a database that fails: no shown update is lost or repeated."""

import asyncio
import json
import os
import random
import signal
import sys
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path

import psycopg
import pytest

from dragoman.bridge import AgentSpec
from tests.bridge.nodes.cluster import check_writes, note_writes
from tests.bridge.nodes.test_two_nodes import keeping, node_of
from tests.bridge.own_agent import plain_prompt
from tests.bridge.viewers import PATIENCE_S, agent, join
from tests.commands import DRAGOMAN
from tests.store.postgres import make_database
from tests.waiting import until

soak = pytest.mark.skipif(not os.environ.get("DRAGOMAN_SOAK"), reason="long: set DRAGOMAN_SOAK=1, or run make soak")
LEASE_S = 2.5
LONG_LEASE_S = 600
"""A lease that nodes do not lose on a busy machine. Tests end the lease of a dead node themselves."""

ROUNDS, MANY_ROUNDS = 2, 200
AT_A_TIME = 4
"""Rounds that run concurrently. Most of them wait for a lease to end."""

OWNER = Path(__file__).parent / "owner.py"


@asynccontextmanager
async def owner_of(address, tmp_path, *steps, shared=None, lease_s=LEASE_S, spec=None, cwd="/work"):
    """Start a node in a child process, which creates a session. Return the process, the session and its files."""
    spec = spec or keeping(tmp_path if shared is None else shared)
    settings = {
        "store": address,
        "home": str(tmp_path / "owner"),
        "lease_s": lease_s,
        "agent": spec.command,
        "env": dict(spec.env),
        "cwd": cwd,
        "go": str(tmp_path / "go"),
        "steps": steps or [{"say": "begun"}, {"until": str(tmp_path / "release")}, {"say": "late"}],
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(OWNER),
        json.dumps(settings),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    try:
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def prompt_until_accepted(viewer, session, text, before=lambda: None):
    """Prompt until a node owns the session. Every refusal has a message, and each prompt has a number."""
    refusals = []
    for number in range(200):
        before()
        answer = await viewer.prompt(session, {"say": f"{text} {number}"})
        if "result" in answer:
            return refusals
        refusals.append(answer["error"]["message"])
    raise AssertionError(refusals)


def check_prompts(said, text, refusals):
    """Check that the accepted prompt sent its text once. A refused prompt may have been interrupted after its text."""
    numbers = [int(each.removeprefix(f"{text} ")) for each in said if each.startswith(f"{text} ")]
    assert numbers == sorted(set(numbers)), said
    assert numbers[-1] == len(refusals), (said, refusals)


async def load_until_accepted(viewer, session):
    """Load a session, and retry if it is refused because the machine is too busy for the lease."""
    refusals = []
    while "error" in (answer := await viewer.load(session)):
        refusals.append(answer["error"]["message"])
        assert "database" in refusals[-1], refusals
        assert len(refusals) < 200, refusals


def is_text(message, text):
    """Return whether a message is this chunk of an answer."""
    update = message.get("params", {}).get("update", {})
    return update.get("sessionUpdate") == "agent_message_chunk" and update["content"]["text"] == text


def owners(address, session):
    query = (
        "SELECT e.owner, e.fence FROM dragoman_end e JOIN dragoman_session s ON s.key = e.session "
        "WHERE s.id = %s AND s.scope = 'journal:one'"
    )
    with psycopg.connect(address) as connection:
        return connection.execute(query, (session,)).fetchall()


def end_lease(address, node):
    """End the lease of a node, which otherwise ends some time after its last heartbeat."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE dragoman_node SET beat = clock_timestamp() - 2 * lease WHERE id = %s", (node,))


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
async def test_another_node_continues_when_the_owner_dies_or_hangs(address, tmp_path, end):
    async with (
        node_of(address, tmp_path, "here", lease_s=LONG_LEASE_S) as served,
        owner_of(address, tmp_path, lease_s=LONG_LEASE_S) as (process, session),
    ):
        viewer = await join(served, extensions=True)
        await viewer.load(session)
        (tmp_path / "go").touch()
        await viewer.until(lambda message: is_text(message, "begun"))
        ((owner, _),) = owners(address, session)
        process.send_signal(end)
        refusals = await prompt_until_accepted(viewer, session, "after", lambda: end_lease(address, owner))
        assert viewer.said(session) == ["begun", f"after {len(refusals)}"], refusals
        ends = [
            update["_meta"]["dragoman/turn"]
            for update in viewer.updates(session)
            if "_meta" in update and "dragoman/turn" in update["_meta"]
        ]
        assert "stopped" in ends[0]["error"]["message"]
        assert session in served.sessions.by_id
        ((_, fence),) = owners(address, session)
        (tmp_path / "release").touch()
        if end == signal.SIGSTOP:
            process.send_signal(signal.SIGCONT)
            refused = json.loads(await process.stdout.readline())
            assert "error" in refused, refused
        assert await prompt_until_accepted(viewer, session, "again") == []
        assert viewer.said(session) == ["begun", f"after {len(refusals)}", "again 0"]
        again = await join(served, extensions=True)
        await again.load(session)
        assert again.said(session) == viewer.said(session)
        assert owners(address, session)[0][1] == fence


def own_agent(address, tmp_path, name, script):
    """Return our own agent with its sessions in the database of its node. Its writes have this application name."""
    path = tmp_path / f"{name}.yaml"
    path.write_text(script)
    env = {"DRAGOMAN_HOME": str(tmp_path / name), "DRAGOMAN_STORE": f"{address}?application_name={name}"}
    return AgentSpec("one", (*DRAGOMAN, "agent", "--model", f"script:{path}"), env=env)


def writers(address):
    """Return the names of the writers of blocks, in order, each with the number of its last block."""
    with psycopg.connect(address) as connection:
        return dict(connection.execute("SELECT writer, max(number) FROM written GROUP BY writer").fetchall())


async def test_session_continues_elsewhere_while_its_frozen_bridge_has_a_live_agent(address, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_STORE_LEASE", "600")  # an agent uses the lease of its bridge, not its own setting
    note_writes(address)
    talks_on = own_agent(address, tmp_path, "frozen", "- - text: begun\n  - delay_s: 600")
    goes_on = own_agent(address, tmp_path, "other", "- - text: after")
    cwd = str(tmp_path)
    async with (
        node_of(f"{address}?application_name=other", tmp_path, "here", goes_on, lease_s=LEASE_S) as served,
        owner_of(
            f"{address}?application_name=frozen", tmp_path, {"say": "talk"}, lease_s=LEASE_S, spec=talks_on, cwd=cwd
        ) as (process, session),
    ):
        viewer = await join(served, extensions=True)
        await viewer.load(session, cwd=cwd)
        (tmp_path / "go").touch()
        await viewer.until(lambda message: is_text(message, "begun"))
        process.send_signal(signal.SIGSTOP)
        refusals = []
        while "result" not in (answer := await plain_prompt(viewer, session, "go on")):
            refusals.append(answer["error"]["message"])
            assert len(refusals) < 200, refusals
        assert viewer.said(session) == ["begun", "after"], refusals
        written = writers(address)["frozen"]
        process.send_signal(signal.SIGCONT)
        assert "error" in json.loads(await process.stdout.readline())
        assert "result" in await plain_prompt(viewer, session, "go on")
        again = await join(served, extensions=True)
        await again.load(session, cwd=cwd)
        assert again.said(session) == viewer.said(session) == ["begun", "after", "after"]
        assert writers(address)["frozen"] == written, "the revived node wrote"
        check_writes(address)


async def test_session_unknown_to_another_nodes_agent_is_readable(address, tmp_path):
    async with node_of(address, tmp_path, "one", agent()) as one:
        here = await join(one, extensions=True)
        session = await here.new()
        await here.prompt(session, {"say": "known"})
    async with node_of(address, tmp_path, "two", agent()) as two:
        there = await join(two, extensions=True)
        await there.load(session)
        assert there.said(session) == ["known"]
        refused = await there.prompt(session, {"say": "more"})
        assert "is read-only" in refused["error"]["message"]


async def test_stopping_node_releases_its_sessions_at_once(address, tmp_path):
    async with node_of(address, tmp_path, "two", lease_s=600) as two:
        async with node_of(address, tmp_path, "one", lease_s=600) as one:
            here, there = await join(one, extensions=True), await join(two, extensions=True)
            session = await here.new()
            await there.load(session)
            await here.prompt(session, {"say": "before"})
        refusals = await prompt_until_accepted(there, session, "after")
        assert there.said(session) == ["before", f"after {len(refusals)}"]
        assert session in two.sessions.by_id


class Trouble:
    """A database that is unavailable for a time."""

    def __init__(self, kind, server, address):
        self._kind = kind
        self._server = server
        self._name = address.rpartition("/")[2]

    def begin(self):
        match self._kind:
            case "stopped":
                self._server.stop()
            case "paused":
                self._server.pause()
            case "read-only":
                self._set_read_only("on")

    def end(self):
        match self._kind:
            case "stopped":
                self._server.start()
            case "paused":
                self._server.resume()
            case "read-only":
                self._set_read_only("off")

    def _set_read_only(self, value):
        with psycopg.connect(self._server.address("postgres"), autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {self._name} SET default_transaction_read_only = {value}")
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s", (self._name,)
            )


@pytest.mark.parametrize("kind", ["stopped", "paused", "read-only"])
async def test_database_failure_ends_the_turn_and_loses_nothing_shown(own_postgres, tmp_path, kind, caplog):
    address = await make_database(own_postgres)
    trouble = Trouble(kind, own_postgres, address)
    async with (
        node_of(address, tmp_path, "one", lease_s=LEASE_S) as one,
        node_of(address, tmp_path, "two", lease_s=LEASE_S) as two,
    ):
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session = await here.new()
        await there.load(session)
        release = tmp_path / "release"
        prompt = here.start_prompt(session, {"say": "begun"}, {"until": str(release)}, {"say": "unseen"})
        for viewer in (here, there):
            await viewer.until(lambda message: is_text(message, "begun"))
        trouble.begin()
        release.touch()
        refused = await here.answer(prompt)
        assert "database" in refused["error"]["message"]
        trouble.end()
        refusals_there = await prompt_until_accepted(there, session, "after")
        refusals_here = await prompt_until_accepted(here, session, "again")
        late = await join(two, extensions=True)
        await late.load(session)
        for viewer in (here, there, late):
            await viewer.until(lambda message: is_text(message, f"again {len(refusals_here)}"))
            assert viewer.said(session) == late.said(session)
        # A hanging database may commit earlier writes after all clients have stopped waiting.
        said = [text for text in late.said(session) if kind != "paused" or text != "unseen"]
        assert [each for each, _ in groupby(said, lambda text: text.partition(" ")[0])] == ["begun", "after", "again"]
        assert said.count("begun") == 1
        check_prompts(said, "after", refusals_there)
        check_prompts(said, "again", refusals_here)
        # Each node logs once that the database is away, and once that it is back. A short pause is not logged.
        away = "the messages of other nodes cannot be read: cannot use the database"
        back = "the messages of other nodes can be read again"
        await until(lambda: caplog.text.count(away) == caplog.text.count(back))
        assert caplog.text.count(away) >= (0 if kind == "paused" else 2)


async def kill_in_a_turn(address, tmp_path, served, wait_s):
    """Kill the owner of a session, continue on this node, and compare a viewer's updates with the journal."""
    tmp_path.mkdir()
    async with owner_of(address, tmp_path, {"flood": 2_000}, shared=tmp_path.parent) as (process, session):
        viewer = await join(served, extensions=True)
        await load_until_accepted(viewer, session)
        (tmp_path / "go").touch()
        await asyncio.sleep(wait_s)  # any moment will do
        process.kill()
        await process.wait()
    refusals = await prompt_until_accepted(viewer, session, "after")
    seen = [message["params"] for message in viewer.seen if message.get("method") == "session/update"]
    again = await join(served, extensions=True)
    await again.load(session)
    assert seen == [message["params"] for message in again.seen if message.get("method") == "session/update"]
    said = again.said(session)
    flood = [text for text in said if text.isdigit()]
    assert said[: len(flood)] == list(map(str, range(len(flood))))
    assert all(text.startswith("after ") for text in said[len(flood) :])
    check_prompts(said, "after", refusals)
    agent_pid = int(session.removeprefix("s").partition("-")[0])
    await until(lambda: not Path(f"/proc/{agent_pid}").exists())
    await viewer.viewer.close()
    await again.viewer.close()


@pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(MANY_ROUNDS, marks=[pytest.mark.soak, soak, pytest.mark.timeout(3600)])]
)
async def test_killed_owners_lose_and_repeat_no_update(address, tmp_path, rounds):
    moments = random.Random(rounds)
    waits = [moments.uniform(0.0, 0.4) for _ in range(rounds)]
    note_writes(address)
    async with node_of(address, tmp_path, "here", lease_s=LEASE_S, patience_s=PATIENCE_S * rounds) as served:

        async def kill_one_after_the_other(first):
            for number in range(first, rounds, AT_A_TIME):
                await kill_in_a_turn(address, tmp_path / f"round{number}", served, waits[number])

        async with asyncio.TaskGroup() as tasks:
            for first in range(AT_A_TIME):
                tasks.create_task(kill_one_after_the_other(first))
    assert check_writes(address) > rounds


async def test_subagent_is_followed_again_after_its_session_was_lost(own_postgres, tmp_path):
    address = await make_database(own_postgres)
    async with node_of(address, tmp_path, "one", lease_s=LEASE_S) as one:
        here = await join(one, extensions=True, subagents={})
        session = await here.new()
        announced = {"update": {"sessionUpdate": "subagent_update", "sessionId": "kid"}}
        await here.prompt(session, announced, child_says("first"))
        release = tmp_path / "release"
        prompt = here.start_prompt(session, {"say": "begun"}, {"until": str(release)}, {"say": "unseen"})
        await here.until(lambda message: is_text(message, "begun"))
        own_postgres.stop()
        release.touch()
        assert "error" in await here.answer(prompt)
        own_postgres.start()
        await prompt_until_accepted(here, session, "after")
        await here.prompt(session, announced, child_says("second"))
        await here.until(lambda message: is_text(message, "second"))
        assert here.said("kid") == ["first", "second"]


def child_says(words):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}}
    return {"notify": ["session/update", {"sessionId": "kid", "update": update}]}


async def test_queued_prompt_is_answered_when_its_session_is_lost(own_postgres, tmp_path):
    address = await make_database(own_postgres)
    async with node_of(address, tmp_path, "one", lease_s=LEASE_S) as one:
        here = await join(one, extensions=True)
        session = await here.new()
        here.start_prompt(session, {"say": "begun"}, {"until": str(tmp_path / "never")})
        await here.until(lambda message: is_text(message, "begun"))
        prompt = {"prompt": [{"type": "text", "text": "next"}], "_meta": {"dragoman": {"queue": "next"}}}
        queued = here.request("session/prompt", {"sessionId": session, **prompt})
        await here.until(lambda message: message.get("method") == "_dragoman/queue")
        own_postgres.stop()
        assert "error" in await here.answer(queued)
        assert here.params_of("_dragoman/queue")[-1]["prompts"] == []
        own_postgres.start()
