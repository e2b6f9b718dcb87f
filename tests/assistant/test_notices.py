"""What the agent says about a conversation, and what is stored. The answer contains only the answer."""

import json

import pytest

from dragoman.assistant.models.model import ReplyRetry, ReplyText, ReplyThought, ToolStart
from dragoman.errors import ModelError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.void_message import is_void
from tests.assistant.coming_back import load
from tests.assistant.running import running_agent, session_in

PLAIN = v1.ClientCapabilities()
BROKEN_OFF = [
    ReplyThought("hm"),
    ReplyText("Half of "),
    ReplyText("it"),
    ReplyRetry("the server broke off", 0),
    ReplyText("All of "),
    ReplyText("it"),
]


class Telling:
    """A model that sends the parts it was given."""

    name = "telling"
    context_size = 100_000
    content_types = frozenset()
    thought_levels = ()
    summarises = True

    def __init__(self, *parts):
        self._parts = parts

    def start(self):
        return self

    async def close(self):
        pass

    async def reply(self, request):
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part


def logged(tmp_path):
    [log] = (tmp_path / ".home").glob("projects/*/*.jsonl")
    return log.read_text()


async def test_client_with_notices_gets_a_retry_as_a_notice(tmp_path):
    async with session_in(tmp_path, model=Telling(ReplyRetry("slow down", 2), ReplyText("Hi"))) as (client, session_id):
        await client.prompt(session_id, "hello")
        [notice] = [each.update for each in client.updates if isinstance(each.update, v1.Notice)]
        assert (notice.severity, notice.title) == ("info", "slow down; trying again in 2 s")
        assert client.text() == "Hi"
    assert "slow down" not in logged(tmp_path)


async def test_retries_of_a_reply_have_one_key(tmp_path):
    retries = [ReplyRetry("slow down", 1), ReplyRetry("slow down", 2)]
    async with session_in(tmp_path, model=Telling(*retries, ReplyText("Hi"))) as (client, session_id):
        for _ in range(2):
            await client.prompt(session_id, "hello")
        keys = [each.update.meta["dragoman/notice"] for each in client.updates if isinstance(each.update, v1.Notice)]
    assert (keys[0], keys[2]) == (keys[1], keys[3])
    assert keys[0] != keys[2]


async def test_retries_are_one_thought_of_other_clients(tmp_path):
    model = Telling(ReplyRetry("slow down", 1), ReplyRetry("slow down", 2), ReplyText("Hi"))
    async with session_in(tmp_path, model=model, capabilities=PLAIN) as (client, session_id):
        await client.prompt(session_id, "hello")
        ids = {each.update.message_id for each in client.updates if isinstance(each.update, v1.AgentThoughtChunk)}
    assert len(ids) == 1


async def test_other_clients_get_a_thought_that_is_not_logged(tmp_path):
    model = Telling(ReplyRetry("slow down", 2), ReplyText("Hi"))
    async with session_in(tmp_path, model=model, capabilities=PLAIN) as (client, session_id):
        await client.prompt(session_id, "hello")
        [thought] = [each.update for each in client.updates if isinstance(each.update, v1.AgentThoughtChunk)]
        assert thought.content.text == "slow down; trying again in 2 s\n\n"
        assert not any(isinstance(each.update, v1.Notice) for each in client.updates)
        assert client.text() == "Hi"
    assert "slow down" not in logged(tmp_path)


async def test_notice_detail_cannot_become_markdown_in_a_thought(tmp_path):
    (tmp_path / "dragoman.yaml").write_text('"![x](http://127.0.0.1/x)": 1\n')
    async with session_in(tmp_path, model=Telling(ReplyText("Hi")), capabilities=PLAIN) as (client, session_id):
        await client.prompt(session_id, "hello")
        [thought] = [each.update for each in client.updates if isinstance(each.update, v1.AgentThoughtChunk)]
    title, empty, *detail = thought.content.text.rstrip("\n").split("\n")
    assert title == "The agent file of this project is ignored, because it is not valid"
    assert empty == ""
    assert any("![x]" in line for line in detail)
    assert all(line.startswith("    ") for line in detail)


@pytest.mark.parametrize("value", [None, False, "yes"])
async def test_client_that_declines_notices_gets_none(tmp_path, value):
    async with running_agent(tmp_path / ".home", model=Telling(ReplyRetry("slow down", 0), ReplyText("Hi"))) as client:
        params = {"protocolVersion": 1, "clientCapabilities": {"session": {"notices": value}}}
        await client.connection.call_extension("initialize", params)
        await client.prompt(await client.new_session(str(tmp_path)), "hello")
        assert client.notices() == []


async def test_other_capabilities_work_next_to_notices(tmp_path):
    options = v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities())
    session = v1.ClientSessionCapabilities(config_options=options, notices=v1.NoticeCapabilities())
    client = v1.ClientCapabilities(session=session)
    async with session_in(tmp_path, model=Telling(ReplyText("Hi")), capabilities=client) as (client, session_id):
        request = v1.LoadSessionRequest(session_id=session_id, cwd=str(tmp_path), mcp_servers=[])
        await client.prompt(session_id, "hello")
        answer = await client.connection.call_extension("session/load", json.loads(encode(request)))
    assert "boolean" in {option["type"] for option in answer["configOptions"]}


async def test_broken_off_message_is_void_and_the_next_has_a_new_id(tmp_path):
    async with session_in(tmp_path, model=Telling(*BROKEN_OFF)) as (client, session_id):
        await client.prompt(session_id, "hello")
        chunks = [each.update for each in client.updates if isinstance(each.update, v1.AgentMessageChunk)]
        half, of_it, void, *rest = chunks
        assert is_void(void)
        assert void.content.text == ""
        assert {half.message_id, of_it.message_id} == {void.message_id}
        assert [chunk.content.text for chunk in rest] == ["All of ", "it"]
        assert void.message_id not in {chunk.message_id for chunk in rest}


async def test_void_message_is_replayed_as_void(tmp_path):
    async with session_in(tmp_path, model=Telling(*BROKEN_OFF)) as (client, session_id):
        await client.prompt(session_id, "hello")
        seen = [update for update in client.conversation() if not isinstance(update, v1.UserMessageChunk)]
    async with running_agent(tmp_path / ".home", model=Telling()) as client:
        await client.initialize()
        await load(client, session_id, tmp_path)
        assert [update for update in client.conversation() if not isinstance(update, v1.UserMessageChunk)] == seen


async def test_retry_before_the_first_chunk_voids_nothing(tmp_path):
    parts = [ToolStart("one", "read_file"), ReplyRetry("slow down", 0), ReplyText("Hi")]
    async with session_in(tmp_path, model=Telling(*parts)) as (client, session_id):
        await client.prompt(session_id, "hello")
        assert not any(is_void(u.update) for u in client.updates if isinstance(u.update, v1.AgentMessageChunk))


async def test_model_failure_is_only_the_error_of_the_turn(tmp_path):
    async with session_in(tmp_path, model=Telling(ModelError("the account is empty"))) as (client, session_id):
        with pytest.raises(RemoteError) as failure:
            await client.prompt(session_id, "hello")
        assert "the account is empty" in str(failure.value)
        assert client.text() == ""
        assert client.notices() == []
    assert "the account is empty" not in logged(tmp_path)
