"""Requests of servers during a call: questions to the user, sampling and roots."""

import asyncio
import json
import shlex

import pytest

from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_CREATE
from tests.assistant.servers.talking import (
    begin,
    call,
    connected,
    in_file,
    merged,
    said,
    stdio,
    talking,
    text,
    write_agent_file,
)
from tests.mcp.servers.commands import scripted
from tests.waiting import until

FORM = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(form=v1.ElicitationFormCapabilities()))
SCHEMA = {"type": "object", "properties": {"size": {"type": "string", "title": "Size"}}, "required": ["size"]}
QUESTION = {"message": "Which size?", "requestedSchema": SCHEMA}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Name a colour."}}],
    "maxTokens": 50,
    "systemPrompt": "Be brief.",
}


class User:
    """Answers elicitations, or never does."""

    def __init__(self, client, answer):
        self.asked = []
        self.news = asyncio.Event()
        self.withdrawn = asyncio.Event()
        self._answer = answer
        client.routes.on_request(ELICITATION_CREATE, self._elicit)

    async def _elicit(self, params):
        self.asked.append(params)
        self.news.set()
        if self._answer is not None:
            return self._answer
        try:
            return await asyncio.Event().wait()
        finally:
            self.withdrawn.set()


def answer_of(call, kind):
    return json.loads(said(call))[kind]


async def ask_with(place, answer, **options):
    async with talking(place, call("one__echo"), text(), servers=[stdio(elicit=QUESTION)], **options) as (talk, _):
        user = User(talk.client, answer)
        turn = await talk.ask()
        return user.asked, answer_of(turn.call, "elicit")


@pytest.mark.parametrize(
    ("answer", "received"),
    [
        (v1.ElicitationAcceptAction(content={"size": "XL"}), {"action": "accept", "content": {"size": "XL"}}),
        (v1.ElicitationDeclineAction(), {"action": "decline"}),
        (v1.ElicitationCancelAction(), {"action": "cancel"}),
    ],
)
async def test_server_question_is_passed_to_the_user(place, answer, received):
    [asked], result = await ask_with(place, answer, capabilities=FORM)
    assert asked.message == "one: Which size?"
    assert list(asked.requested_schema.properties) == ["size"]
    assert result == {"result": received}


async def test_client_without_elicitation_declines_the_question(place):
    asked, result = await ask_with(place, v1.ElicitationAcceptAction(content={"size": "XL"}))
    assert (asked, result) == ([], {"result": {"action": "decline"}})


async def test_open_question_is_cancelled_with_its_turn(place, tmp_path):
    cancelled = tmp_path / "cancelled"
    server = stdio(elicit=QUESTION, cancel_file=str(cancelled))
    async with talking(place, call("one__echo"), text(), servers=[server], capabilities=FORM) as (talk, _):
        user = User(talk.client, None)
        turn = asyncio.create_task(talk.ask())
        await user.news.wait()
        await talk.client.cancel(talk.id)
        ended = await turn
        assert (ended.stop, ended.call["status"]) == ("cancelled", "failed")
        await user.withdrawn.wait()
        await until(cancelled.exists)
        assert talk.statuses()["one"]["state"] == "ready"
        assert (await talk.ask()).text == "done"


async def test_shared_servers_question_reaches_only_the_calling_session(place):
    write_agent_file(place[1], {"one": in_file(scripted(elicit=QUESTION))})
    async with connected(place, call("one__echo"), text(), capabilities=FORM) as (client, _):
        first, second = await begin(client, place[0]), await begin(client, place[0])
        user = User(client, v1.ElicitationDeclineAction())
        await second.ask()
        await first.ask()
        assert [asked.session_id for asked in user.asked] == [second.id, first.id]


async def test_parallel_calls_of_a_shared_server_get_no_questions(place, tmp_path):
    """A server over stdio does not say to which call its question belongs."""
    record = tmp_path / "record"
    tools = [
        {"name": "ask", "does": {"elicit": QUESTION, "delay_s": {"call": 0.5}}},
        {"name": "hold", "does": {"hang_at": "call"}},
    ]
    write_agent_file(place[1], {"one": in_file(scripted(tools=tools, record=str(record)))})
    async with connected(place, call("one__hold"), call("one__ask"), text(), capabilities=FORM) as (client, _):
        user = User(client, v1.ElicitationAcceptAction(content={"size": "XL"}))
        asking, holding = await begin(client, place[0]), await begin(client, place[0])

        async def hold(talk, count):
            turn = asyncio.create_task(talk.ask())
            await until(lambda: record.exists() and record.read_text().count('"hold"') == count)
            return turn

        turn = await hold(asking, 1)
        await client.cancel(asking.id)
        await turn
        turn = asyncio.create_task(asking.ask())
        await until(lambda: '"ask"' in record.read_text())
        held = await hold(holding, 2)
        assert answer_of((await turn).call, "elicit") == {"result": {"action": "decline"}}
        assert user.asked == []
        await client.cancel(holding.id)
        await held


@pytest.mark.parametrize("decision", ["allow", "reject"])
async def test_server_may_ask_the_model_if_the_user_agrees(place, decision):
    def decide(request):
        return decision if "asks the model" in request.tool_call.title else "allow"

    replies = [call("one__echo"), text("Green."), text()]
    async with talking(place, *replies, servers=[stdio(sample=SAMPLE)], decide=decide) as (talk, model):
        turn = await talk.ask()
        [question] = [each for each in turn.calls if each["title"] == "one asks the model"]
        [called] = [each for each in turn.calls if each["title"] == "one: echo"]
        assert any("Name a colour." in shown for shown in question["shown"])
        answer = answer_of(called, "sample")
        if decision == "allow":
            assert answer["result"]["content"] == {"type": "text", "text": "Green."}
            assert question["status"] == "completed"
            request, messages = model.requests[1]
            assert (request.instructions, request.max_output_tokens) == ("Be brief.", 50)
            assert len(messages) == 1
            assert not request.tools
        else:
            assert answer["error"]["message"].startswith("Not allowed: ")
            assert question["status"] == "failed"
            assert len(model.requests) == 2


async def test_open_model_request_ends_with_its_cancelled_turn(place):
    replies = [call("one__echo"), [{"text": "I"}, {"delay_s": 600}], text()]
    async with talking(place, *replies, servers=[stdio(sample=SAMPLE)]) as (talk, model):
        turn = asyncio.create_task(talk.ask())
        await until(lambda: len(model.requests) == 2)
        await talk.client.cancel(talk.id)
        ended = await turn
        await talk.client.wait_for(
            lambda client: all(each["status"] == "failed" for each in merged(client.conversation(talk.id)))
        )
        assert ended.stop == "cancelled"
        assert (await talk.ask()).text == "done"


async def test_server_learns_the_session_directories_and_their_changes(place, tmp_path):
    (tmp_path / "more").mkdir()
    record = tmp_path / "record"
    server = stdio(roots=True, record=str(record))
    async with talking(place, call("one__echo"), text(), servers=[server]) as (talk, _):
        roots = answer_of((await talk.ask()).call, "roots")["result"]["roots"]
        assert [root["uri"] for root in roots] == [place[0].as_uri()]
        await talk.load(server, additional_directories=[str(tmp_path / "more")])
        await until(lambda: "notifications/roots/list_changed" in record.read_text())
        roots = answer_of((await talk.ask()).call, "roots")["result"]["roots"]
        assert [root["uri"] for root in roots] == [place[0].as_uri(), (tmp_path / "more").as_uri()]


@pytest.mark.parametrize("way", ["client", "user", "agent file"])
async def test_server_with_its_own_directories_gets_no_roots(place, tmp_path, way):
    record = tmp_path / "record"
    command = scripted(record=str(record))
    given = [stdio(record=str(record), meta={"dragoman/roots": False})] if way == "client" else []
    if way == "agent file":
        write_agent_file(place[1], {"one": in_file(command, roots=False)})
    async with talking(place, servers=given) as (talk, _):
        if way == "user":
            await talk.ask(f"/mcp add one --no-roots {shlex.join(command)}")
        await talk.ask()
    said = [json.loads(line) for line in record.read_text().splitlines()]
    [hello] = [each["params"] for each in said if each["method"] == "initialize"]
    assert "roots" not in hello["capabilities"]
    asked = next(each["params"]["_meta"] for each in said if each["method"] == "server/discover")
    assert "roots" not in asked["io.modelcontextprotocol/clientCapabilities"]


class Slow(User):
    """Answers only after another call, which began after the question, has timed out."""

    def __init__(self, client, answer, other):
        super().__init__(client, answer)
        self._other = other

    async def _elicit(self, params):
        assert (await self._other.ask()).call["status"] == "failed"
        return await super()._elicit(params)


async def test_waiting_for_the_user_does_not_count_toward_the_call_timeout(place):
    write_agent_file(place[1], limits={"mcp_call_timeout_s": 1.0})
    server, hanging = stdio(elicit=QUESTION), stdio(hang_at="call")
    async with (
        talking(place, call("one__echo"), text(), servers=[hanging]) as (other, _),
        talking(place, call("one__echo"), text(), servers=[server], capabilities=FORM) as (talk, _),
    ):
        Slow(talk.client, v1.ElicitationAcceptAction(content={"colour": "blue"}), other)
        turn = await talk.ask()
        assert turn.call["status"] == "completed"
        assert answer_of(turn.call, "elicit")["result"]["action"] == "accept"
