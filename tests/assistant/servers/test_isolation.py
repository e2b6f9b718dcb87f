"""Sessions in one process share nothing of their servers."""

from dragoman.protocol import v1
from tests.assistant.servers.talking import begin, call, connected, said, stdio, surroundings, text
from tests.mcp.servers.commands import scripted_http


async def test_servers_of_one_name_with_different_secrets_stay_separate(place, tmp_path):
    (tmp_path / "other").mkdir()
    only = {"tools": [{"name": "echo", "does": {"echo_env": True}}, {"name": "secret_tool"}], "tool_count": 0}
    replies = [call("shared__echo"), text(), call("shared__secret_tool", text="x"), text()]
    async with connected(place, *replies) as (client, model):
        first = await begin(client, place[0], stdio("shared", env={"WHO": "the first one"}, **only))
        second = await begin(client, tmp_path / "other", stdio("shared", env={"WHO": "the 2nd one"}, echo_env=True))
        seen = [surroundings((await talk.ask()).call) for talk in (first, second)]
        assert [each["env"]["WHO"] for each in seen] == ["the first one", "the 2nd one"]
        assert seen[0]["pid"] != seen[1]["pid"]
        assert model.tools()[::2] == [["shared__echo", "shared__secret_tool"], ["shared__echo"]]
        refused = (await second.ask()).call
        assert refused["status"] == "failed"
        assert "no tool here is named shared__secret_tool" in said(refused)
        for talk, other in ((first, "the 2nd one"), (second, "the first one")):
            shown = (await talk.ask("/mcp")).text + (await talk.ask("/context")).text
            assert other not in shown + str(client.conversation(talk.id))


async def test_headers_of_one_session_do_not_reach_another(place):
    def at(address, token):
        return v1.McpServerHttp(
            name="web", url=f"{address}/mcp", headers=[v1.HttpHeader(name="Authorization", value=f"Bearer {token}")]
        )

    with scripted_http(authorization="Bearer first-token") as address:
        async with connected(place) as (client, model):
            first = await begin(client, place[0], at(address, "first-token"))
            await first.until("ready", "web")
            second = await begin(client, place[0], at(address, "other-token"))
            await second.until("failed", "web")
            assert "401" in second.statuses()["web"]["reason"]
            await first.ask()
            await second.ask()
            assert model.tools() == [["web__echo"], []]
            assert "first-token" not in str(client.conversation(second.id))


async def test_closing_one_session_keeps_the_servers_of_another(place):
    async with connected(place, call("one__echo", text="hi"), text()) as (client, _):
        first, second = await begin(client, place[0], stdio()), await begin(client, place[0], stdio())
        await first.until()
        await first.close()
        assert said((await second.ask()).call) == "hi"
