"""Viewers and agents of both versions of ACP, for the tests of versions."""

import json
import sys
from pathlib import Path

from dragoman.bridge import AgentSpec
from tests.bridge.viewers import RecordedViewer, join

AGENT_V2 = Path(__file__).parent.parent / "agents" / "agent_v2.py"
INFO = {"name": "editor", "version": "1"}


def agent_v2(name="one", **behaviour):
    return AgentSpec(name, (sys.executable, str(AGENT_V2), json.dumps(behaviour)))


class ViewerOfV2(RecordedViewer):
    """A viewer that speaks version 2."""

    async def initialize(self, *, extensions=False, **capabilities):
        if extensions:
            capabilities["_meta"] = {"dragoman": {"viewer": 1}}
        return await self.ask("initialize", {"protocolVersion": 2, "info": INFO, "capabilities": capabilities})

    async def resume(self, session, *, replay=True, cwd="/work", after=None, **params):
        if replay:
            params["replayFrom"] = {"type": "start"}
        if after is not None:
            params["_meta"] = {"dragoman": {"after": after}}
        return await self.ask("session/resume", {"sessionId": session, "cwd": cwd, **params})

    async def turn(self, session, *steps):
        """Prompt, and wait for the end of the work."""
        count = len(self.states("idle"))
        answer = await self.prompt(session, *steps)
        await self.until(lambda _: len(self.states("idle")) > count)
        return answer

    def states(self, *names):
        """Return the states that it received, or only the ones with these names."""
        states = [each for each in self.updates() if each["sessionUpdate"] == "state_update"]
        return [each for each in states if not names or each["state"] in names]


async def join_v2(served, *, read_only=False, extensions=False, **capabilities):
    one = ViewerOfV2(served, read_only=read_only)
    await one.initialize(extensions=extensions, **capabilities)
    return one


async def both_on(served, *, first=1):
    """Connect viewers of both versions to a session, which the viewer of version `first` opens."""
    if first == 1:
        one = await join(served)
        session = await one.new()
        two = await join_v2(served)
        await two.resume(session)
    else:
        two = await join_v2(served)
        session = await two.new()
        one = await join(served)
        await one.load(session)
    return session, one, two


def texts(viewer, kind="agent_message_chunk"):
    """Return the texts of chunks and messages, joined by message."""
    whole = {"agent_message_chunk": "agent_message", "user_message_chunk": "user_message"}[kind]
    found = {}
    for update in viewer.updates():
        if update["sessionUpdate"] == kind:
            found.setdefault(update.get("messageId"), []).append(update["content"]["text"])
        elif update["sessionUpdate"] == whole:
            found[update["messageId"]] = [block["text"] for block in update["content"]]
    return ["".join(each) for each in found.values()]


def finished(viewer):
    """Return the tool calls, each with its last title, status and content."""
    calls = {}
    for update in viewer.updates():
        if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
            calls.setdefault(update["toolCallId"], {}).update(update)
        elif update["sessionUpdate"] == "tool_call_content_chunk":
            calls[update["toolCallId"]].setdefault("content", []).append(update["content"])
    return {
        name: (call["title"], call["status"], [item["content"]["text"] for item in call.get("content", [])])
        for name, call in calls.items()
    }
