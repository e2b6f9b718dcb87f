"""Servers inside the client, reached over the ACP connection."""

import asyncio

from dragoman.errors import ErrorCode, RpcError
from dragoman.mcp.era import CAPABILITIES_KEY, VERSION_KEY
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_CREATE, MCP_MESSAGE, MCP_NOTIFICATION
from tests.assistant.servers.talking import begin, call, connected, said, text

ECHO = {"name": "echo", "description": "Answers what it was given", "inputSchema": {"type": "object"}}
COMPLETE = {"resultType": "complete"}
CACHED = {**COMPLETE, "ttlMs": 3_600_000, "cacheScope": "private"}


class Inside:
    """An MCP server inside a client. `calls` has the results of tool calls."""

    def __init__(self, client):
        self.connection = client.connection
        self.asked = []
        self.listening = asyncio.Event()
        self.unheard = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.begun = asyncio.Event()
        self.tools = [ECHO]
        self.calls = self.echo
        self.versions = ["2026-07-28"]
        self.is_there = True
        client.routes.on_request(MCP_MESSAGE, self._answer)

    def methods(self):
        return [request.method for request in self.asked]

    async def notify(self, request, method, params=None):
        notice = v1.MessageMcpNotification(
            server_id=request.server_id, request_id=request.request_id, method=method, params=params
        )
        await self.connection.notify(MCP_NOTIFICATION, notice)

    async def echo(self, request):
        return content(request.params["arguments"].get("text", ""))

    async def _answer(self, request):
        self.asked.append(request)
        if not self.is_there:
            problem = {"problem": "it went home"}
            raise RpcError(ErrorCode.MCP_SERVER_UNAVAILABLE, problem, phrase="MCP server registration unavailable")
        answered = await self._outcome(request)
        if isinstance(answered, v1.McpError):
            return v1.MessageMcpError(error=answered)
        return v1.MessageMcpResult(result=answered)

    async def _outcome(self, request):
        match request.method:
            case "server/discover":
                can = {"tools": {"listChanged": True}}
                return {**CACHED, "supportedVersions": self.versions, "capabilities": can}
            case "tools/list":
                return {**CACHED, "tools": self.tools}
            case "subscriptions/listen":
                wanted = request.params["notifications"]
                await self.notify(request, "notifications/subscriptions/acknowledged", {"notifications": wanted})
                self.listening.set()
                try:
                    return await asyncio.Event().wait()
                finally:
                    self.unheard.set()
            case "tools/call":
                self.begun.set()
                try:
                    return await self.calls(request)
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
            case other:
                return v1.McpError(code=-32601, message=f"Method not found: {other}")


def content(words):
    return {**COMPLETE, "content": [{"type": "text", "text": words}]}


def acp(server_id="inner"):
    return v1.McpServerAcp(name="one", server_id=server_id)


async def test_server_inside_the_client_is_called_over_the_connection(place):
    async with connected(place, call("one__echo", text="hi"), text()) as (client, _):
        inside = Inside(client)
        talk = await begin(client, place[0], acp())
        await talk.until("ready", "one", transport="acp", tools=1)
        assert said((await talk.ask()).call) == "hi"
        assert {request.server_id for request in inside.asked} == {"inner"}
        assert "initialize" not in inside.methods()
        for request in inside.asked:
            assert request.params["_meta"][VERSION_KEY] == "2026-07-28"
            assert "elicitation" in request.params["_meta"][CAPABILITIES_KEY]
        await inside.listening.wait()
        await talk.close()
        await inside.unheard.wait()


async def test_servers_over_acp_are_advertised(place):
    async with connected(place) as (client, _):
        assert (await client.initialize()).agent_capabilities.mcp_capabilities.acp


async def test_server_unknown_to_the_client_fails_with_a_message(place):
    async with connected(place) as (client, _):
        Inside(client).is_there = False
        talk = await begin(client, place[0], acp())
        await talk.until("failed", "one")
        assert "the client does not have this server" in talk.statuses()["one"]["reason"]
        assert "The MCP server one failed" in (await talk.ask()).notices[0]


async def test_server_that_the_client_has_again_reconnects(place):
    async with connected(place, call("one__echo", text="again"), text()) as (client, _):
        inside = Inside(client)
        inside.is_there = False
        talk = await begin(client, place[0], acp())
        await talk.until("failed", "one")
        inside.is_there = True
        await talk.until("ready", "one")
        assert said((await talk.ask()).call) == "again"


async def test_server_that_leaves_during_a_call_fails_it_and_returns(place):
    async with connected(place, call("one__echo"), text("went on")) as (client, _):
        inside = Inside(client)
        talk = await begin(client, place[0], acp())
        await talk.until("ready", "one")

        async def leave(request):
            inside.is_there = False
            raise RpcError(ErrorCode.MCP_SERVER_UNAVAILABLE)

        inside.calls = leave
        turn = await talk.ask()
        assert turn.call["status"] == "failed"
        assert "the client does not have this server" in said(turn.call)
        assert turn.text == "went on"
        inside.is_there = True
        await talk.until("ready", "one")


async def test_client_without_support_fails_with_a_message(place):
    async with connected(place) as (client, _):
        talk = await begin(client, place[0], acp())
        await talk.until("failed", "one")
        assert "the client cannot provide servers" in talk.statuses()["one"]["reason"]


async def test_version_mismatch_names_both_sides(place):
    async with connected(place) as (client, _):
        Inside(client).versions = ["2031-01-01"]
        talk = await begin(client, place[0], acp())
        await talk.until("failed", "one")
        reason = talk.statuses()["one"]["reason"]
        assert "2031-01-01" in reason
        assert "2026-07-28" in reason


async def test_progress_is_shown(place):
    async with connected(place, call("one__echo"), text()) as (client, _):
        inside = Inside(client)

        async def count(request):
            token = request.params["_meta"]["progressToken"]
            for step in (1, 2):
                progress = {"progressToken": token, "progress": step, "total": 2}
                await inside.notify(request, "notifications/progress", progress)
            return content("counted")

        inside.calls = count
        talk = await begin(client, place[0], acp())
        assert (await talk.ask()).call["shown"] == ["1 of 2", "2 of 2", "counted"]


async def test_server_error_fails_the_call_with_its_message(place):
    async with connected(place, call("one__echo"), text("went on")) as (client, _):
        inside = Inside(client)

        async def fail(request):
            return v1.McpError(code=-32603, message="the printer is on fire")

        inside.calls = fail
        talk = await begin(client, place[0], acp())
        turn = await talk.ask()
        assert turn.call["status"] == "failed"
        assert "the printer is on fire" in said(turn.call)
        assert turn.text == "went on"


async def test_transport_failure_differs_from_a_server_error(place):
    async with connected(place, call("one__echo"), text("went on")) as (client, _):
        inside = Inside(client)

        async def fail(request):
            data = {"details": "no such printer"}
            raise RpcError(ErrorCode.MCP_BACKEND_FAILED, data, phrase="MCP server handler failed")

        inside.calls = fail
        talk = await begin(client, place[0], acp())
        turn = await talk.ask()
        assert "the server inside the client failed" in said(turn.call)
        assert "no such printer" in said(turn.call)
        assert talk.statuses()["one"]["state"] == "ready"


async def test_result_that_is_not_an_object_fails_the_call(place):
    async with connected(place, call("one__echo"), text("went on")) as (client, _):
        inside = Inside(client)

        async def answer_nothing(request):
            return None

        inside.calls = answer_nothing
        talk = await begin(client, place[0], acp())
        assert "its answer violates the protocol" in said((await talk.ask()).call)


async def test_cancelled_turn_cancels_the_request_at_the_client(place):
    async with connected(place, call("one__echo"), text()) as (client, _):
        inside = Inside(client)
        inside.calls = lambda request: asyncio.Event().wait()
        talk = await begin(client, place[0], acp())
        turn = asyncio.create_task(talk.ask())
        await inside.begun.wait()
        await client.cancel(talk.id)
        ended = await turn
        assert (ended.stop, ended.call["status"]) == ("cancelled", "failed")
        await inside.cancelled.wait()
        assert talk.statuses()["one"]["state"] == "ready"


async def test_changed_tools_are_listed_again(place):
    async with connected(place) as (client, model):
        inside = Inside(client)
        talk = await begin(client, place[0], acp())
        await talk.until("ready", "one")
        await inside.listening.wait()
        [listen] = [request for request in inside.asked if request.method == "subscriptions/listen"]
        inside.tools = [ECHO, {**ECHO, "name": "more"}]
        await inside.notify(listen, "notifications/tools/list_changed")
        await talk.until("ready", "one", tools=2)
        await talk.ask()
        assert model.tools() == [["one__echo", "one__more"]]


async def test_required_input_is_sent_in_a_second_request(place):
    form = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(form=v1.ElicitationFormCapabilities()))
    async with connected(place, call("one__echo"), text(), capabilities=form) as (client, _):
        inside = Inside(client)

        async def answer(params):
            return v1.ElicitationAcceptAction(content={"size": "XL"})

        async def ask(request):
            given = request.params.get("inputResponses")
            if given is None:
                schema = {"type": "object", "properties": {"size": {"type": "string"}}}
                question = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": schema}}
                wanted = {"size": question, "where": {"method": "roots/list"}}
                return {"resultType": "input_required", "inputRequests": wanted, "requestState": "half"}
            root = given["where"]["roots"][0]["uri"]
            return content(f"{given['size']['content']['size']} {root} {request.params['requestState']}")

        client.routes.on_request(ELICITATION_CREATE, answer)
        inside.calls = ask
        talk = await begin(client, place[0], acp())
        assert said((await talk.ask()).call) == f"XL {place[0].as_uri()} half"


async def test_two_sessions_have_separate_requests(place):
    async with connected(place, call("one__echo", text="hi"), text()) as (client, _):
        inside = Inside(client)
        first, second = await begin(client, place[0], acp()), await begin(client, place[0], acp())
        await first.until()
        await second.until()
        await first.close()
        assert said((await second.ask()).call) == "hi"
        ids = [request.request_id for request in inside.asked]
        assert len(set(ids)) == len(ids)


async def test_notification_without_a_request_is_ignored(place):
    async with connected(place) as (client, _):
        inside = Inside(client)
        talk = await begin(client, place[0], acp())
        await talk.until("ready", "one")
        foreign = v1.MessageMcpRequest(server_id="inner", request_id="nowhere", method="tools/list")
        listed = inside.methods().count("tools/list")
        await inside.notify(foreign, "notifications/tools/list_changed")
        assert (await talk.ask()).text == "done"
        assert inside.methods().count("tools/list") == listed
