"""The scripted servers speak valid MCP over every transport, as judged by the official SDK's client."""

import asyncio
import json

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp.judging import TRANSPORTS, judging
from tests.waiting import until

pytestmark = pytest.mark.parametrize("transport", TRANSPORTS)


async def test_server_introduces_itself_and_lists_tools_in_pages(transport):
    async with judging(transport, name="weather", tool_count=5, page_size=4) as client:
        assert client.server_info.name == "weather"
        first = await client.list_tools()
        second = await client.list_tools(cursor=first.next_cursor)
        names = [tool.name for tool in [*first.tools, *second.tools]]
        assert names == ["echo", *(f"tool_{number:05}" for number in range(5))]
        assert second.next_cursor is None


async def test_a_call_is_answered(transport):
    async with judging(transport) as client:
        result = await client.call_tool("echo", {"text": "grüezi"})
        assert (result.is_error, result.content[0].text) == (False, "grüezi")


async def test_each_content_type_is_valid(transport):
    async with judging(transport, content_tools=True) as client:
        results = {tool.name: await client.call_tool(tool.name, {}) for tool in (await client.list_tools()).tools[1:]}
    kinds = {name: result.content[0].type for name, result in results.items()}
    assert kinds == {
        "text": "text",
        "image": "image",
        "audio": "audio",
        "resource": "resource",
        "blob": "resource",
        "resource_link": "resource_link",
        "structured": "text",
        "error": "text",
    }
    assert [name for name, result in results.items() if result.is_error] == ["error"]
    assert results["structured"].structured_content == {"degrees": 21}


async def test_progress_and_logs_arrive(transport):
    steps, logs = [], []

    async def on_progress(progress, total, message):
        steps.append((progress, total, message))

    async def on_log(params):
        logs.append(params.data)

    options = {"progress": 3, "log": [{"data": "one"}, {"data": "two"}]}
    async with judging(transport, {"logging_callback": on_log}, **options) as client:
        await client.call_tool("echo", {}, progress_callback=on_progress)
        await until(lambda: len(steps) == 3 and len(logs) == 2)
    assert steps == [(number, 3, f"step {number}") for number in (1, 2, 3)]
    assert logs == ["one", "two"]


@pytest.mark.parametrize("string_ids", [False, True])
async def test_server_asks_its_client(transport, string_ids):
    async def elicit(context, params):
        return types.ElicitResult(action="accept", content={"city": params.message})

    async def sample(context, params):
        content = types.TextContent(type="text", text="sampled")
        return types.CreateMessageResult(role="assistant", content=content, model="judge")

    async def roots(context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///here")])

    form = {"message": "Bern", "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
    question = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
    callbacks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    options = {"elicit": form, "sample": question, "roots": True, "string_ids": string_ids}
    async with judging(transport, callbacks, **options) as client:
        result = await client.call_tool("echo", {})
    elicited, sampled, rooted = (json.loads(content.text) for content in result.content)
    assert elicited["elicit"]["result"]["content"] == {"city": "Bern"}
    assert sampled["sample"]["result"]["content"]["text"] == "sampled"
    assert rooted["roots"]["result"]["roots"][0]["uri"] == "file:///here"


async def test_client_without_elicitation_refuses(transport):
    async with judging(transport, roots=True) as client:
        [content] = (await client.call_tool("echo", {})).content
        assert "error" in json.loads(content.text)["roots"]


async def test_changed_list_is_announced(transport):
    told = asyncio.Event()

    async def on_message(message):
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with judging(transport, {"message_handler": on_message}, list_changed_after_call=True) as client:
        await client.call_tool("echo", {})
        await told.wait()
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "added_1"]


async def test_prompts_accept_arguments(transport):
    prompt = {"name": "weather", "arguments": [{"name": "city", "required": True}], "text": "Weather in {city}?"}
    async with judging(transport, prompts=[prompt]) as client:
        [listed] = (await client.list_prompts()).prompts
        assert (listed.name, listed.arguments[0].name) == ("weather", "city")
        [message] = (await client.get_prompt("weather", {"city": "Bern"})).messages
        assert message.content.text == "Weather in Bern?"
        with pytest.raises(MCPError, match="city"):
            await client.get_prompt("weather", {})


async def test_abandoned_call_is_cancelled_at_the_server(transport, tmp_path):
    cancelled, record = tmp_path / "cancelled", tmp_path / "record"
    tools = [{"name": "stuck", "does": {"hang_at": "call"}}, {"name": "echo"}]
    async with judging(transport, tools=tools, cancel_file=str(cancelled), record=str(record)) as client:
        call = asyncio.ensure_future(client.call_tool("stuck", {}))
        await until(lambda: "stuck" in record.read_text())
        assert (await client.call_tool("echo", {"text": "meanwhile"})).content[0].text == "meanwhile"
        assert not cancelled.exists()
        call.cancel()
        await until(cancelled.exists)


async def test_a_server_that_ignores_unknown_methods_can_be_initialized(transport):
    async with judging(transport, {"mode": "legacy"}, ignore_unknown_methods=True) as client:
        assert (await client.list_tools()).tools[0].name == "echo"
