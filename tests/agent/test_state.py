"""A program's data in a session is restored after load, resume, fork and a kill."""

import asyncio
import datetime as dt
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from dragoman.agent.sessions.session_memory import MAX_STATE_BYTES
from dragoman.errors import RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_FORK, SESSION_RESUME
from dragoman.store import FileStore
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.agent.connecting import make_agent, session_with


async def counting(turn):
    if turn.text == "history":
        for message in await turn.session.history():
            await turn.say(f"{message.role}: {message.text}\n")
        return
    state = turn.session.state
    state["prompts"] = state.get("prompts", 0) + 1
    if turn.text == "use a tool":
        async with turn.tool("Count", kind="think", raw_input={"n": 1}) as call:
            await call.show("counted")
    await turn.say(str(state["prompts"]))


@pytest.mark.parametrize("way", ["load_session", "resume_session", "fork"])
async def test_state_is_restored(tmp_path, way):
    agent = make_agent(tmp_path, counting)
    async with session_with(agent, tmp_path) as session:
        await session.run("one")
        await session.run("two")
    async with agent.connect() as remote:
        again = await getattr(remote, way)(session.id, tmp_path)
        assert (await again.run("three")).text == "3"


async def test_state_of_a_fork_is_independent(tmp_path):
    async with session_with(make_agent(tmp_path, counting), tmp_path) as session:
        await session.run("one")
        fork = await session.fork()
        assert (await fork.run("two")).text == "2"
        assert (await session.run("two")).text == "2"


async def test_tool_text_about_user_messages_is_not_a_fork_point(tmp_path):
    async def look(turn):
        message = {"sessionUpdate": "user_message_chunk", "content": [{"text": "two"}]}
        async with turn.tool("Look", kind="read", raw_input={"update": message}):
            await turn.say("seen")

    agent = make_agent(tmp_path, look)
    async with session_with(agent, tmp_path) as session:
        await session.run("one")
        await session.run("two")
    near, far = memory_pair()
    serving = asyncio.create_task(agent.serve(far))
    async with ScriptedClient(near) as client:
        await client.initialize()
        resume = v1.ResumeSessionRequest(session_id=session.id, cwd=str(tmp_path))
        await client.connection.call(SESSION_RESUME, resume)
        meta = {"dragoman/fork": {"before": {"text": "two", "occurrence": 1}}}
        fork = v1.ForkSessionRequest(session_id=session.id, cwd=str(tmp_path), meta=meta)
        answer = await client.connection.call(SESSION_FORK, fork)
    await serving
    assert answer.meta["dragoman/fork"] == {"turns": 1}


async def test_history_has_the_messages_before_this_turn(tmp_path):
    agent = make_agent(tmp_path, counting)
    async with session_with(agent, tmp_path) as session:
        await session.run("use a tool")
    async with agent.connect() as remote:
        again = await remote.resume_session(session.id, tmp_path)
        assert (await again.run("history")).text == "user: use a tool\ntool: counted\nagent: 1\n"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"seen": [{1, 2}]}, r"session.state['bad']['seen'][0] is set; JSON supports str, int"),
        (dt.date(2026, 1, 1), "session.state['bad'] is date;"),
        (b"x", "session.state['bad'] is bytes;"),
        ({1: 2}, "session.state['bad'] has the key 1; JSON keys must be str"),
        (float("nan"), "session.state['bad'] is nan, which JSON cannot represent"),
        (object(), "session.state['bad'] is object;"),
        ("x" * MAX_STATE_BYTES, "the limit is"),
    ],
)
async def test_state_that_cannot_be_saved_is_an_error_and_undone(tmp_path, value, problem):
    async def answer(turn):
        if turn.text == "break":
            turn.session.state["bad"] = value
        turn.session.state["good"] = turn.text
        await turn.say(json.dumps(sorted(turn.session.state)))

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        await session.run("fine")
        with pytest.raises(RemoteError, match=rf"session\.state cannot be saved.*{re.escape(problem)}"):
            (await session.run("break")).raise_for_error()
        assert (await session.run("fine")).text == '["good"]'


async def test_store_of_the_program_is_used_and_left_open(tmp_path):
    store = FileStore(tmp_path / "elsewhere")
    agent = make_agent(tmp_path, counting, store=store)
    async with session_with(agent, tmp_path) as session:
        await session.run("one")
    async with agent.connect() as remote:
        assert (await (await remote.load_session(session.id, tmp_path)).run("two")).text == "2"
    await store.close()
    assert not (tmp_path / "home" / "projects").exists()


async def test_records_of_the_program_are_restored_in_order(tmp_path):
    async def answer(turn):
        turn.session.record({"said": turn.text})

    agent = make_agent(tmp_path, answer)
    seen = []

    @agent.on_record
    def restore(session, data):
        seen.append(json.loads(data)["said"])

    async with session_with(agent, tmp_path) as session:
        await session.run("one")
        await session.run("two")
    assert seen == []
    async with agent.connect() as remote:
        await remote.resume_session(session.id, tmp_path)
    assert seen == ["one", "two"]


PROGRAM = """
from dragoman.agent import Agent

agent = Agent("streaming", version="1")


@agent.on_prompt
async def answer(turn):
    turn.session.state["turns"] = turn.session.state.get("turns", 0) + 1
    if turn.text == "stream":
        await turn.tool("Streams", kind="execute").announce()
        while True:
            await turn.say("0123456789")
    await turn.say(str(turn.session.state["turns"]))


agent.run()
"""


class Process:
    """The program in a separate process, driven line by line."""

    def __init__(self, folder):
        program = folder / "program.py"
        program.write_text(PROGRAM)
        environment = {**os.environ, "DRAGOMAN_HOME": str(folder / "home")}
        self.process = subprocess.Popen(
            [sys.executable, program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._id = 0
        self.call("initialize", protocolVersion=1)

    def send(self, method, **params):
        self._id += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method, **params):
        """Return the response and the updates before it."""
        self.send(method, **params)
        updates = []
        for line in self.process.stdout:
            if json.loads(line).get("id") == self._id:
                return json.loads(line)["result"], updates
            updates.append(line)
        raise AssertionError("the agent ended without an answer")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait(20)


def test_kill_loses_no_sent_update_and_keeps_the_last_finished_state(tmp_path):
    first = Process(tmp_path)
    session_id = first.call("session/new", cwd=str(tmp_path), mcpServers=[])[0]["sessionId"]
    place = {"sessionId": session_id}
    _, seen = first.call("session/prompt", **place, prompt=[{"type": "text", "text": "one"}])
    first.send("session/prompt", **place, prompt=[{"type": "text", "text": "stream"}])
    for line in first.process.stdout:
        seen.append(line)
        if len(seen) == 3_000:
            first.process.kill()
    assert first.end() == -signal.SIGKILL

    second = Process(tmp_path)
    _, replayed = second.call("session/load", **place, cwd=str(tmp_path), mcpServers=[])
    said = [line for line in replayed if b"user_message_chunk" not in line]
    whole = [line for line in seen if line.endswith(b"\n") and b"available_commands" not in line]
    assert said[: len(whole)] == whole
    ended = [json.loads(line)["params"]["update"] for line in said if b'"status":"failed"' in line]
    assert len(ended) == 1  # the open call
    _, answer = second.call("session/prompt", **place, prompt=[{"type": "text", "text": "two"}])
    assert [json.loads(line)["params"]["update"]["content"]["text"] for line in answer if b"agent_message" in line] == [
        "2"
    ]
    assert second.end() == 0
