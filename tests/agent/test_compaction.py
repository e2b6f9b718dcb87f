"""Clients with the capability see a compaction, and others receive a text, live and in a replay."""

import asyncio

import pytest

from dragoman.agent import Turn
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_LOAD
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.agent.connecting import make_agent

SHOWS = v1.ClientCapabilities(
    session=v1.ClientSessionCapabilities(notices=v1.NoticeCapabilities(), compaction=v1.CompactionCapabilities())
)
PLAIN = v1.ClientCapabilities()


class Broken(Exception):
    pass


def summing_agent(tmp_path):
    agent = make_agent(tmp_path)

    async def sum_up(turn: Turn) -> None:
        async with turn.compaction(messages=3) as compaction:
            await compaction.say("In ")
            await compaction.say("short.")
            if turn.text.endswith("fail"):
                raise Broken("no room")
            if turn.text.endswith("wait"):
                await asyncio.Event().wait()
            if turn.text.endswith("over"):
                compaction.start_over("Shorter.")

    @agent.on_prompt
    async def answer(turn: Turn) -> None:
        await sum_up(turn)
        await turn.say("Done.")

    agent.command("compact", "Sum up")(sum_up)
    return agent


class Talk:
    """A client with some capabilities, connected to the agent."""

    def __init__(self, tmp_path, capabilities):
        self._near, far = memory_pair()
        self._serving = asyncio.ensure_future(summing_agent(tmp_path).serve(far))
        self.client = ScriptedClient(self._near, capabilities=capabilities)

    async def __aenter__(self):
        await self.client.__aenter__()
        await self.client.initialize()
        return self.client

    async def __aexit__(self, *error):
        await self.client.__aexit__(*error)
        await self._serving


def shown(client):
    """Return the updates of compactions without their IDs, and the updates of messages, thoughts and notices."""
    found = []
    for notification in client.updates:
        match notification.update:
            case v1.CompactionUpdate(status=status, summary=summary):
                found.append((status, "".join(block.text for block in summary or [])))
            case v1.CompactionSummaryChunk(content=content):
                found.append(("chunk", content.text))
            case v1.Notice(title=title):
                found.append(("notice", title))
            case v1.AgentMessageChunk(content=content):
                found.append(("message", content.text))
            case v1.AgentThoughtChunk(content=content):
                found.append(("thought", content.text.strip()))
            case _:
                pass
    return found


AUTOMATIC = "The conversation so far, 3 messages, was summarized to make room."
ASKED = "The conversation so far, 3 messages, was summarized. The session log keeps all messages."
GROWING = [("in_progress", ""), ("chunk", "In "), ("chunk", "short.")]


@pytest.mark.parametrize(
    ("capabilities", "prompt", "live", "replayed"),
    [
        (SHOWS, "go", [*GROWING, ("completed", "In short."), ("message", "Done.")], None),
        (SHOWS, "go over", [*GROWING, ("completed", "Shorter."), ("message", "Done.")], None),
        (SHOWS, "/compact", [*GROWING, ("completed", "In short.")], None),
        (None, "go", [("notice", AUTOMATIC), ("message", "Done.")], [("message", "Done.")]),
        (None, "/compact", [("message", ASKED)], [("message", ASKED)]),
        (PLAIN, "go", [("thought", AUTOMATIC), ("message", "Done.")], [("message", "Done.")]),
        (PLAIN, "/compact", [("message", ASKED)], [("message", ASKED)]),
    ],
)
async def test_each_client_sees_a_compaction_live_and_in_a_replay(tmp_path, capabilities, prompt, live, replayed):
    async with Talk(tmp_path, capabilities) as client:
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, prompt)
        assert shown(client) == live
    load = v1.LoadSessionRequest(session_id=session_id, cwd=str(tmp_path), mcp_servers=[])
    whole = [entry for entry in live if entry[0] in ("completed", "message") and entry[1] != ASKED]
    if capabilities is not SHOWS:
        whole.insert(0, ("completed", "In short."))
    for reader, expected in ((capabilities, whole if replayed is None else replayed), (SHOWS, whole)):
        async with Talk(tmp_path, reader) as client:
            await client.connection.call(SESSION_LOAD, load)
            assert shown(client) == expected


async def test_failed_and_cancelled_compactions_are_reported(tmp_path):
    async with Talk(tmp_path, SHOWS) as client:
        session_id = await client.new_session(str(tmp_path))
        with pytest.raises(Exception, match="no room"):
            await client.prompt(session_id, "fail")
        [failed] = [each.update for each in client.updates if getattr(each.update, "status", None) == "failed"]
        assert failed.error == "no room"
        prompting = asyncio.create_task(client.prompt(session_id, "wait"))
        await client.wait_for(lambda client: shown(client).count(("chunk", "short.")) == 2)
        await client.cancel(session_id)
        assert (await prompting).stop_reason == "cancelled"
        assert shown(client)[-1] == ("cancelled", "")


async def test_tool_text_about_compactions_is_replayed_unchanged(tmp_path):
    words = '"update":{"sessionUpdate":"compaction_update"}'
    agent = make_agent(tmp_path)

    @agent.on_prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Look", kind="read", raw_input={"update": {"sessionUpdate": "compaction_x"}}) as call:
            await call.show(words)

    async with agent.connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.ask("go")
    near, far = memory_pair()
    serving = asyncio.create_task(agent.serve(far))
    async with ScriptedClient(near, capabilities=PLAIN) as client:
        await client.initialize()
        load = v1.LoadSessionRequest(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
        await client.connection.call(SESSION_LOAD, load)
    await serving
    calls = [each.update for each in client.updates if isinstance(each.update, v1.ToolCall | v1.ToolCallProgress)]
    assert calls[0].raw_input == {"update": {"sessionUpdate": "compaction_x"}}
    assert calls[-1].content[0].content.text == words
