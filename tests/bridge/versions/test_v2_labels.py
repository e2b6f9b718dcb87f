"""Titles, the archive and the status of sessions between viewers and agents of both versions."""

import pytest

from tests.bridge.versions.pairs import agent_v2, join_v2
from tests.bridge.viewers import LOADING, agent, join, serve

PAIRS = {
    "v2-viewer-v1-agent": (join_v2, agent),
    "v1-viewer-v2-agent": (join, agent_v2),
    "v2-viewer-v2-agent": (join_v2, agent_v2),
}


def offered_to(viewer):
    result = viewer.seen[0]["result"]
    if "capabilities" in result:
        return result["capabilities"]["session"]
    return result["agentCapabilities"]["sessionCapabilities"]


async def listed(viewer, archived):
    sessions = (await viewer.ask("session/list", {"archived": archived}))["result"]["sessions"]
    return [(each["sessionId"], each["title"], each["archived"]) for each in sessions]


@pytest.mark.parametrize("pair", PAIRS)
async def test_sessions_have_titles_an_archive_and_a_status(tmp_path, pair):
    joining, make_agent = PAIRS[pair]
    spec = make_agent(capabilities=LOADING) if make_agent is agent else make_agent()
    async with serve(tmp_path, spec) as served:
        one, other = await joining(served), await joining(served, extensions=True)
        assert {"title", "archive", "status"} <= offered_to(one).keys()
        session = await one.new()
        await one.prompt(session, {"say": "a"})
        answer = await one.ask("session/set_title", {"sessionId": session, "title": "Mine"})
        assert answer["result"]["title"] == "Mine"
        await one.until(lambda message: message.get("params", {}).get("update", {}).get("title") == "Mine")
        assert (await one.ask("session/status", {"sessionId": session}))["result"]["status"] == "open"
        assert "error" not in await one.ask("session/archive", {"sessionId": session})
        await other.announced(session, lambda entry: entry.get("archived"))
        assert await listed(one, "exclude") == []
        assert await listed(one, "only") == [(session, "Mine", True)]
        assert "error" not in await one.ask("session/unarchive", {"sessionId": session})
        assert await listed(one, "exclude") == [(session, "Mine", False)]
        unknown = (await one.ask("session/status", {"sessionId": "none"}))["error"]
        assert (unknown["code"], unknown["data"]["sessionId"]) == (-32002, "none")
