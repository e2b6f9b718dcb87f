"""The test's side of an agent. It answers the usual requests, and the test does the rest."""

import asyncio
import json
import sys
from pathlib import Path

TIMEOUT_S = 15
PIPE = Path(__file__).with_name("agent_relay.py")

ALLOW = {"optionId": "yes", "name": "Allow", "kind": "allow_once"}
REJECT = {"optionId": "no", "name": "Reject", "kind": "reject_once"}


class PlayedAgent:
    """Plays the agent of one bridge, even after its process restarts."""

    def __init__(self):
        self.capabilities = {
            "loadSession": True,
            "mcpCapabilities": {"http": True},
            "promptCapabilities": {"image": True},
        }
        self.initialized = {}
        """Additional members of the answer to `initialize`."""
        self.sessions = 0
        self.starts = 0
        self.received = []
        self._prompts = asyncio.Queue()
        self._open = set()
        self._cancels = asyncio.Queue()
        self.refusals = {}
        """Errors by refused method."""
        self.results = {}
        """Results by additional method."""
        self._answers = {}
        self._asked = 0
        self._writer = None
        self._gone = asyncio.Event()

    async def open(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26)
        self.command = [sys.executable, str(PIPE), str(self._server.sockets[0].getsockname()[1])]

    async def close(self):
        self._server.close()
        if self._writer is not None:
            self._writer.close()
            await self._gone.wait()

    async def next_turn(self):
        """Wait for the next prompt."""
        message = await asyncio.wait_for(self._prompts.get(), TIMEOUT_S)
        return Turn(self, message)

    async def cancelled(self):
        """Wait until a turn is cancelled, and return its session."""
        return await asyncio.wait_for(self._cancels.get(), TIMEOUT_S)

    def params_of(self, method):
        """Return the params of the last request of this method."""
        return next(message["params"] for message in reversed(self.received) if message.get("method") == method)

    @property
    def is_idle(self):
        """Whether every prompt was answered, and every question of the agent."""
        return not self._open and not self._answers and self._prompts.empty()

    def forget(self):
        """Reset this agent. Return False if it is busy."""
        self.received.clear()
        self.refusals.clear()
        self.results.clear()
        while not self._cancels.empty():
            self._cancels.get_nowait()
        return self.is_idle

    def send(self, message):
        if "method" not in message:
            self._open.discard(message["id"])
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def crash(self, code=3, words="the agent fell over"):
        self._writer.write(f"!{code} {words}\n".encode())

    async def drain(self):
        await self._writer.drain()

    async def ask(self, method, params):
        """Send a request and return its answer."""
        self._asked += 1
        self._answers[self._asked] = asyncio.get_running_loop().create_future()
        self.send({"id": self._asked, "method": method, "params": params})
        return await asyncio.wait_for(self._answers[self._asked], TIMEOUT_S)

    def start_asking(self, turn, **call):
        """Send a permission request without waiting. Await the returned task for the choice."""
        return asyncio.ensure_future(turn.ask(**call))

    async def _serve(self, reader, writer):
        self._writer = writer
        self._gone.clear()
        self.starts += 1
        try:
            while line := await reader.readline():
                self._handle(json.loads(line))
        except ConnectionError:
            pass  # it crashed on purpose
        finally:
            writer.close()
            self._gone.set()

    def _handle(self, message):
        self.received.append(message)
        if "method" not in message:
            self._answers.pop(message["id"]).set_result(message)
        elif message["method"] == "session/cancel":
            self._cancels.put_nowait(message["params"]["sessionId"])
        elif message["method"] == "session/prompt":
            self._open.add(message["id"])
            self._prompts.put_nowait(message)
        elif "id" in message:
            self._answer(message)

    def _answer(self, message):
        if message["method"] in self.refusals:
            self.send({"id": message["id"], "error": self.refusals[message["method"]]})
            return
        result = self.results.get(message["method"]) or self._result(message["method"])
        if result is None:
            error = {"code": -32601, "message": f"Method not found: {message['method']}"}
            self.send({"id": message["id"], "error": error})
        else:
            self.send({"id": message["id"], "result": result})

    def _result(self, method):
        if method == "initialize":
            info = {"name": "played", "title": "The played agent", "version": "1"}
            return {"protocolVersion": 1, "agentCapabilities": self.capabilities, "agentInfo": info, **self.initialized}
        if method in {"session/new", "session/fork"}:
            self.sessions += 1
            return {"sessionId": f"session-{self.sessions}"}
        return {} if method in {"session/load", "session/delete", "session/close"} else None


class Turn:
    """One prompt, which the test answers."""

    def __init__(self, agent, message):
        self.agent = agent
        self.session_id = message["params"]["sessionId"]
        self.text = "".join(block.get("text", "") for block in message["params"]["prompt"])
        self.id = message["id"]

    def update(self, session_update, /, **fields):
        self.update_of(self.session_id, session_update, **fields)

    def update_of(self, session, session_update, /, **fields):
        """Send an update of another session."""
        params = {"sessionId": session, "update": {"sessionUpdate": session_update, **fields}}
        self.agent.send({"method": "session/update", "params": params})

    def say(self, text):
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def think(self, text):
        self.update("agent_thought_chunk", content={"type": "text", "text": text})

    def title(self, title):
        self.update("session_info_update", title=title)

    def end(self, reason="end_turn"):
        self.agent.send({"id": self.id, "result": {"stopReason": reason}})

    def refuse(self, message, **data):
        """Answer with an error."""
        self.agent.send({"id": self.id, "error": {"code": -32000, "message": message, "data": data}})

    def start_call(self, call_id="call-1", **fields):
        self.update("tool_call", toolCallId=call_id, **{"title": "Run the tests", "kind": "execute", **fields})

    def finish_call(self, call_id="call-1", status="completed", **fields):
        self.update("tool_call_update", toolCallId=call_id, status=status, **fields)

    async def ask(self, options=(ALLOW, REJECT), **call):
        """Send a permission request and return the chosen option, or the outcome without one."""
        outcome = await self.ask_outcome(options, **call)
        return outcome.get("optionId", outcome["outcome"])

    async def ask_outcome(self, options=(ALLOW, REJECT), *, session_id=None, **call):
        """Send a permission request and return the whole outcome."""
        params = {
            "sessionId": session_id or self.session_id,
            "toolCall": {"toolCallId": "call-1", "title": "Run the tests", "kind": "execute", **call},
            "options": list(options),
        }
        return (await self.agent.ask("session/request_permission", params))["result"]["outcome"]
