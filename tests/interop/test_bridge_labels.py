"""The official TypeScript SDK on both ends of our bridge. Its client uses features that its agent does not have."""

import json
import subprocess

import pytest

from tests.interop.bridge import bridge
from tests.interop.peers import PEERS, needs_node
from tests.interop.serving import standing

pytestmark = needs_node

ALL = {"session": {"notices": {}, "compaction": {}}, "subagents": {}}


@pytest.fixture(scope="module", params=[ALL, {}], ids=["takes-all", "takes-nothing"])
def report(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    with standing(bridge("node", str(PEERS / "typescript_work_agent.mjs")), folder / "home") as server:
        client = ["node", str(PEERS / "typescript_label_client.mjs"), str(folder), json.dumps(request.param)]
        done = subprocess.run([*client, server["acp"], server["token"]], stdout=subprocess.PIPE, check=False)
    made = json.loads(done.stdout)
    assert done.returncode == 0, made
    return {**made, "takes": request.param}


def updates_of(report, session=None):
    wanted = session or report["sessionId"]
    return [each["update"] for each in report["updates"] if each["sessionId"] == wanted]


def test_bridge_adds_titles_archive_and_status(report):
    offered = report["agentCapabilities"]["sessionCapabilities"]
    assert {"title", "archive", "status", "list"} <= offered.keys()
    assert report["titled"] == {"title": "My work"}
    assert report["open"] == {"status": "open"}
    assert report["listed"]["sessions"] == []
    [archived], [again] = report["archived"]["sessions"], report["again"]["sessions"]
    assert (archived["sessionId"], archived["title"], archived["archived"]) == (report["sessionId"], "My work", True)
    assert again == {**archived, "archived": False, "updatedAt": again["updatedAt"]}
    assert report["unknown"] == -32002
    titles = [update.get("title") for update in updates_of(report) if update["sessionUpdate"] == "session_info_update"]
    assert titles == ["Read it all", "My work"]


def test_newer_updates_become_thoughts_for_clients_without_them(report):
    kinds = [update["sessionUpdate"] for update in updates_of(report)]
    child = updates_of(report, f"{report['sessionId']}-child")
    calls = [update for update in updates_of(report) if update["sessionUpdate"] == "tool_call"]
    assert [call["name"] for call in calls] == ["look_around"]
    newer = ["notice", "compaction_update", "compaction_summary_chunk", "compaction_update"]
    if report["takes"]:
        assert kinds[: kinds.index("tool_call")] == [*newer, "subagent_update", "session_message"]
        assert [update["content"]["text"] for update in child] == ["I read."]
    else:
        assert kinds[: kinds.index("tool_call")] == ["agent_thought_chunk"] * len(newer)
        assert child == []
