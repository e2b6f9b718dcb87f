"""Arbitrary messages from a viewer with a read-only link never reach the agent."""

import asyncio
import contextlib
import json
import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dragoman.protocol import methods, methods_v2
from tests.bridge.versions.pairs import agent_v2, join_v2
from tests.bridge.viewers import PATIENCE_S, agent, join, serve

EVERYTHING = {
    "loadSession": True,
    "sessionCapabilities": {key: {} for key in ("list", "resume", "fork", "delete", "status", "title", "archive")},
}
HERE = "the session"
"""Placeholder for the id of an open session."""

OURS = ("sessions", "projects", "search", "files", "revert", "inspect", "queue/change", "queue/resume", "leave")
NAMES = sorted(methods.METHODS.keys() | methods_v2.METHODS.keys() | {f"_dragoman/{each}" for each in OURS})
SPELLINGS = (str, str, str.upper, str.title, lambda name: f" {name}", lambda name: f"{name}\0")
METHODS = st.builds(lambda name, spell: spell(name), st.sampled_from(NAMES), st.sampled_from(SPELLINGS))

SCALARS = st.sampled_from([None, True, 0, -1, 1.5, 10**30, "", HERE, HERE.upper(), f"{HERE}\0", "unknown", "\ud800"])
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.just("sessionId"), SCALARS, max_size=1))
KEYS = ("sessionId", "SessionId", "session_id", "sessionid", "SESSIONID", "sessionId ", "cursor", "query", "requestId")
EVIL = {"cwd": "/", "mcpServers": [{"name": "evil", "command": "/bin/evil", "args": [], "env": []}]}
PARAMS = st.one_of(VALUES, st.builds(lambda given: {**EVIL, **given}, st.dictionaries(st.sampled_from(KEYS), VALUES)))
IDS = st.one_of(st.none(), st.integers(-1, 3), st.sampled_from(["1", "q1", "r1", 1.5]))
MESSAGES = st.fixed_dictionaries({}, optional={"id": IDS, "method": METHODS, "params": PARAMS, "result": PARAMS})
REPEATED = st.sampled_from(
    (
        b'{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"x","sessionId":null,"cwd":"/"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"session/list","method":"session/new","params":{"cwd":"/"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"session\\/load","params":{"session\\u0049d":null,"cwd":"/"}}',
        b'[{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}]',
    )
)

every_message = settings(
    max_examples=600 if os.environ.get("DRAGOMAN_SOAK") else 20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def write(message, session):
    if isinstance(message, bytes):
        return message
    return json.dumps({"jsonrpc": "2.0", **message}).replace(HERE, session).encode()


async def attack(reader, owner, lines):
    for line in lines:
        reader.send(line)
    await reader.ask("session/status", {"sessionId": "unknown"})
    await owner.ask("_echo")


@pytest.mark.parametrize("make_agent", [agent, agent_v2])
@pytest.mark.parametrize("join_reader", [join, join_v2])
def test_no_message_of_a_reader_reaches_the_agent(make_agent, join_reader, tmp_path):
    log = tmp_path / "log"
    spec = make_agent(capabilities=EVERYTHING, log=str(log), store=str(tmp_path))
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        served = runner.run(stack.enter_async_context(serve(tmp_path, spec, patience_s=60 * PATIENCE_S)))
        owner = runner.run(join(served))
        session = runner.run(owner.new())
        before = log.read_text()

        @every_message
        @given(st.lists(MESSAGES | REPEATED, max_size=20))
        @example([{"id": 1, "method": "session/load", "params": {**EVIL, "SessionId": HERE}}])
        @example([{"id": 1, "method": "session/resume", "params": {**EVIL, "sessionId": [HERE]}}])
        @example([{"id": 1, "method": "session/list", "params": {**EVIL, "cursor": "x"}}])
        def judge(messages):
            reader = runner.run(join_reader(served, read_only=True))
            runner.run(attack(reader, owner, [write(each, session) for each in messages]))
            runner.run(reader.viewer.close())
            sent = [json.loads(line)["method"] for line in log.read_text().removeprefix(before).splitlines()]
            assert set(sent) == {"_echo"}

        judge()
        runner.run(stack.aclose())
