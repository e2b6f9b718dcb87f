"""A client of version 2 drives an agent of the kit: states, lasting IDs, cancelling one tool call, closing."""

import asyncio
import base64
import json
from contextlib import asynccontextmanager

import pytest

from dragoman.agent import CallCancelledError, ToolOutcome
from dragoman.agent.turns.prepared_call import Action, PreparedCall
from dragoman.wire import Peer, memory_pair
from tests.agent.connecting import make_agent
from tests.errors import refused
from tests.protocol.translate.conversation import Judge
from tests.waiting import until

INFO = {"name": "editor", "version": "1"}


class V2Client:
    """A client of version 2 that keeps every update, checks it against the schema, and allows everything."""

    def __init__(self, peer_of):
        self.updates = []
        self.judge = Judge(2)
        self._peer = peer_of(self)

    async def request(self, request):
        params = json.loads(bytes(request.params))
        self.judge.is_sent([{"id": 0, "method": request.method, "params": params}])
        return {"outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}}

    def notification(self, method, params):
        self.judge.is_sent([{"method": method, "params": json.loads(bytes(params))}])
        self.updates.append(json.loads(bytes(params))["update"])

    async def ask(self, method, **params):
        return json.loads(bytes(await self._peer.call(method, params)))

    async def notify(self, method, **params):
        await self._peer.notify(method, params)

    async def idle(self):
        """Wait for the end of the turn and return its updates."""
        await until(lambda: any(each.get("state") == "idle" for each in self.updates))
        taken, self.updates = self.updates, []
        return [each for each in taken if each["sessionUpdate"] != "available_commands_update"]


@asynccontextmanager
async def client_of(agent, cwd):
    near, far = memory_pair()
    peers = []

    def make_peer(handler):
        peers.append(Peer(near, handler))
        return peers[0]

    serving = asyncio.create_task(agent.serve(far))
    client = V2Client(make_peer)
    async with peers[0]:
        await client.ask("initialize", protocolVersion=2, info=INFO)
        client.session_id = (await client.ask("session/new", cwd=str(cwd)))["sessionId"]
        yield client
    await serving


def kinds(updates):
    names = ("sessionUpdate", "state", "stopReason")
    return [" ".join(str(each[name]) for name in names if name in each) for each in updates]


def prompt(client, text="go"):
    return client.ask("session/prompt", sessionId=client.session_id, prompt=[{"type": "text", "text": text}])


async def say_hello(turn):
    await turn.say("hello")


async def test_prompt_message_has_the_same_id_in_answer_echo_and_replay(tmp_path):
    async with client_of(make_agent(tmp_path, say_hello), tmp_path) as client:
        message_id = (await prompt(client))["messageId"]
        live = await client.idle()
        assert kinds(live) == [
            "state_update running",
            "user_message_chunk",
            "session_info_update",
            "agent_message_chunk",
            "state_update idle end_turn",
        ]
        assert live[1]["messageId"] == message_id
        resumed = {"sessionId": client.session_id, "cwd": str(tmp_path), "replayFrom": {"type": "start"}}
        await client.ask("session/resume", **resumed)
        replayed = await client.idle()
        assert replayed == [*live[1:-1], {"sessionUpdate": "state_update", "state": "idle"}]


async def test_clients_of_both_versions_read_each_others_messages(tmp_path):
    agent = make_agent(tmp_path, say_hello)
    async with client_of(agent, tmp_path) as client:
        await prompt(client, "first")
        await client.idle()
        session_id = client.session_id
    async with agent.connect() as remote:
        session = await remote.load_session(session_id, tmp_path)
        assert [event.text for event in session.history if hasattr(event, "text")] == ["first", "hello"]
        await session.run("second")
    async with client_of(agent, tmp_path) as client:
        await client.ask("session/resume", sessionId=session_id, cwd=str(tmp_path), replayFrom={"type": "start"})
        said = [each["content"]["text"] for each in await client.idle() if "content" in each]
        assert said == ["first", "hello", "second", "hello"]


class Slow:
    """An agent with a prepared call that never ends, and the text that it sends afterwards."""

    def __init__(self):
        self.was_cancelled = asyncio.Event()

    async def answer(self, turn):
        async def run(progress):
            try:
                await asyncio.Event().wait()
            finally:
                self.was_cancelled.set()

        async def prepare():
            return PreparedCall("Wait", "other", reads_only=True, inside=True, action=Action("tool", "wait"), run=run)

        outcome = await turn.run_call(prepare, name="wait", title="Wait", kind="other", raw_input={})
        assert isinstance(outcome, ToolOutcome)
        await turn.say(outcome.text)


async def test_one_tool_call_is_cancelled_and_the_turn_continues(tmp_path):
    slow = Slow()
    async with client_of(make_agent(tmp_path, slow.answer), tmp_path) as client:
        await prompt(client)
        await until(lambda: any(each.get("capabilities") for each in client.updates))
        [call] = [each for each in client.updates if each.get("capabilities")]
        assert call["capabilities"] == {"cancel": {}}
        wanted = {"sessionId": client.session_id, "toolCallId": call["toolCallId"]}
        assert await client.ask("tool_call/cancel", **wanted) == {}
        updates = await client.idle()
        [end] = [each for each in updates if each.get("status") == "cancelled"]
        assert end["capabilities"] is None
        assert slow.was_cancelled.is_set()
        assert [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"] == [
            "cancelled by the user"
        ]
        assert kinds(updates)[-1] == "state_update idle end_turn"
        error = await refused(client.ask("tool_call/cancel", **wanted))
        assert (error.code, error.data["path"]) == (-32602, "params.toolCallId")


class SlowBody:
    """An agent with two nested `async with` calls whose body never ends."""

    def __init__(self, *, handles=True, ends_slowly=False):
        self.handles = handles
        self.ends_slowly = ends_slowly
        self.interrupted = asyncio.Event()

    async def answer(self, turn):
        try:
            outer = turn.tool("Outer", kind="think", call_id="outer")
            async with outer, turn.tool("Inner", kind="think", call_id="inner"):
                try:
                    await asyncio.Event().wait()
                finally:
                    self.interrupted.set()
                    if self.ends_slowly:
                        await asyncio.Event().wait()
        except CallCancelledError as cancelled:
            if not self.handles:
                raise
            assert asyncio.current_task().cancelling() == 0
            await asyncio.sleep(0)
            await turn.say(str(cancelled))


@pytest.mark.parametrize("handles", [True, False])
@pytest.mark.parametrize("wanted", ["inner", "outer"])
async def test_async_with_body_is_cancelled_and_its_function_continues(tmp_path, wanted, handles):
    async with client_of(make_agent(tmp_path, SlowBody(handles=handles).answer), tmp_path) as client:
        await prompt(client)
        await until(lambda: any(each.get("toolCallId") == "inner" for each in client.updates))
        assert [each["capabilities"] for each in client.updates if "toolCallId" in each] == [{"cancel": {}}] * 2
        assert await client.ask("tool_call/cancel", sessionId=client.session_id, toolCallId=wanted) == {}
        updates = await client.idle()
        ends = {each["toolCallId"]: each["status"] for each in updates if "toolCallId" in each}
        assert ends["inner"] == "cancelled"
        assert ends["outer"] == ("cancelled" if wanted == "outer" else "failed")
        said = [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
        assert said == (["the user cancelled this tool call"] if handles else [])
        assert kinds(updates)[-1] == "state_update idle end_turn"


async def test_cancelling_the_turn_during_a_call_cancel_cancels_the_turn(tmp_path):
    body = SlowBody(ends_slowly=True)
    async with client_of(make_agent(tmp_path, body.answer), tmp_path) as client:
        await prompt(client)
        await until(lambda: any(each.get("toolCallId") == "inner" for each in client.updates))
        await client.ask("tool_call/cancel", sessionId=client.session_id, toolCallId="inner")
        await body.interrupted.wait()
        await client.notify("session/cancel", sessionId=client.session_id)
        updates = await client.idle()
        assert kinds(updates)[-1] == "state_update idle cancelled"
        assert not [each for each in updates if each["sessionUpdate"] == "agent_message_chunk"]


async def test_cancelling_the_session_ends_its_calls_as_cancelled(tmp_path):
    async with client_of(make_agent(tmp_path, Slow().answer), tmp_path) as client:
        await prompt(client)
        await until(lambda: any(each.get("capabilities") for each in client.updates))
        await client.notify("session/cancel", sessionId=client.session_id)
        updates = await client.idle()
        assert [each["status"] for each in updates if "status" in each][-1] == "cancelled"
        assert kinds(updates)[-1] == "state_update idle cancelled"


async def test_closing_cancels_and_the_session_can_be_reopened(tmp_path):
    async with client_of(make_agent(tmp_path, Slow().answer), tmp_path) as client:
        await prompt(client)
        await until(lambda: any(each.get("capabilities") for each in client.updates))
        assert await client.ask("session/close", sessionId=client.session_id) == {}
        assert kinds(await client.idle())[-1] == "state_update idle cancelled"
        assert await client.ask("session/close", sessionId="unknown") == {}
        listed = (await client.ask("session/list"))["sessions"]
        assert [each["sessionId"] for each in listed] == [client.session_id]
        error = await refused(client.ask("session/resume", sessionId="unknown", cwd=str(tmp_path)))
        assert (error.code, error.data["sessionId"]) == (-32002, "unknown")


async def test_missing_terminal_cannot_be_cancelled(tmp_path):
    async with client_of(make_agent(tmp_path, say_hello), tmp_path) as client:
        error = await refused(client.ask("terminal/cancel", sessionId=client.session_id, terminalId="t"))
        assert (error.code, error.data["path"]) == (-32602, "params.terminalId")


class Commands:
    """An agent that runs each line of a prompt in a separate tool call and sends how it ended."""

    async def answer(self, turn):
        for command in turn.text.splitlines():
            async with turn.tool("Run", kind="execute", asks=False) as call:
                end = await turn.run(command, call=call)
            await turn.say(f"{end.exit_code} {end.signal} {end.cancelled}; ")


def fold_terminals(updates):
    """Return the terminals of the updates, merged like a client of version 2 does."""
    terminals = {}
    for each in updates:
        if each["sessionUpdate"] == "terminal_update":
            terminal = terminals.setdefault(each["terminalId"], {"output": b""})
            terminal |= {name: value for name, value in each.items() if name not in ("sessionUpdate", "output")}
            if "output" in each:
                terminal["output"] = base64.b64decode(each["output"]["data"])
        elif each["sessionUpdate"] == "terminal_output_chunk":
            terminals[each["terminalId"]]["output"] += base64.b64decode(each["data"])
    return list(terminals.values())


def said(updates):
    return "".join(each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk")


async def test_one_command_is_cancelled_by_its_terminal_and_the_turn_continues(tmp_path):
    agent = make_agent(tmp_path, Commands().answer)
    waits = "echo begun; sleep 1000"
    async with client_of(agent, tmp_path) as client:
        await prompt(client, f"{waits}\necho second\ntrue")
        await until(lambda: any(each["output"] for each in fold_terminals(client.updates)))
        [running] = fold_terminals(client.updates)
        assert running["capabilities"] == {"cancel": {}}
        [call_id] = {each["toolCallId"] for each in client.updates if "toolCallId" in each}
        wanted = {"sessionId": client.session_id, "terminalId": running["terminalId"]}
        assert await client.ask("terminal/cancel", **wanted) == {}
        updates = await client.idle()
        first, *rest = fold_terminals(updates)
        assert first == {
            "terminalId": running["terminalId"],
            "command": waits,
            "cwd": str(tmp_path),
            "output": b"begun",
            "exitStatus": {"signal": "SIGTERM"},
            "capabilities": None,
        }
        assert [(each["output"], each["exitStatus"]) for each in rest] == [
            (b"second", {"exitCode": 0}),
            (b"", {"exitCode": 0}),
        ]
        assert [each["status"] for each in updates if each.get("toolCallId") == call_id and "status" in each][-1] == (
            "completed"
        )
        assert said(updates) == "None SIGTERM True; 0 None False; 0 None False; "
        assert kinds(updates)[-1] == "state_update idle end_turn"
        error = await refused(client.ask("terminal/cancel", **wanted))
        assert (error.code, error.data["path"]) == (-32602, "params.terminalId")
        session_id = client.session_id
    async with agent.connect() as remote:
        session = await remote.load_session(session_id, tmp_path)
        shown = [
            part.content.text for event in session.history if hasattr(event, "call") for part in event.call.content
        ]
        assert shown[-1] == "[no output]"
        assert "```\nbegun\n```" in shown


async def test_commands_are_terminals_in_a_replay_to_a_v2_client(tmp_path):
    agent = make_agent(tmp_path, Commands().answer)
    async with agent.connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.run("echo out; exit 3")
    async with client_of(agent, tmp_path) as client:
        await client.ask("session/resume", sessionId=session.id, cwd=str(tmp_path), replayFrom={"type": "start"})
        updates = await client.idle()
        [terminal] = fold_terminals(updates)
        assert (terminal["output"], terminal["exitStatus"]) == (b"out", {"exitCode": 3})
        assert "capabilities" not in terminal
        contents = [
            each["content"] for each in updates if each["sessionUpdate"] == "tool_call_update" and "content" in each
        ]
        assert contents[-1] == [{"type": "terminal", "terminalId": terminal["terminalId"]}]


async def test_only_an_offered_login_is_accepted(tmp_path):
    async with client_of(make_agent(tmp_path, say_hello), tmp_path) as client:
        [method] = (await client.ask("initialize", protocolVersion=2, info=INFO))["authMethods"]
        assert await client.ask("auth/login", methodId=method["methodId"]) == {}
        error = await refused(client.ask("auth/login", methodId="another"))
        assert (error.code, error.data["path"]) == (-32602, "params.methodId")


@pytest.mark.parametrize("wrong", [{"type": "_end"}, {"type": "message"}])
async def test_unknown_cursor_is_refused(tmp_path, wrong):
    async with client_of(make_agent(tmp_path, say_hello), tmp_path) as client:
        asked = {"sessionId": client.session_id, "cwd": str(tmp_path), "replayFrom": wrong}
        error = await refused(client.ask("session/resume", **asked))
        assert (error.code, error.data["path"]) == (-32602, "params.replayFrom")
