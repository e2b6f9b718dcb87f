"""Export of a session as a file: access, hostile texts, open and stored sessions."""

import json

import httpx2
import pytest

from tests.bridge.front.serving import serving
from tests.bridge.front.sockets import call, dial, open_session

EVIL = "</p><script>alert(1)</script>"


async def say_something(served):
    async with dial(served) as socket:
        session = await open_session(socket)
        words = [{"type": "text", "text": json.dumps({"chunks": 2, "note": EVIL})}]
        await call(socket, id=5, method="session/prompt", params={"sessionId": session, "prompt": words})
        await call(socket, id=6, method="session/set_title", params={"sessionId": session, "title": 'Ápples & "pears"'})
    return session


async def export(served, session, kind="json", agent="one", headers=None):
    async with httpx2.AsyncClient(base_url=served.url, headers=headers or served.headers) as http:
        return await http.get(f"/export/{agent}", params={"session": session, "format": kind})


async def test_session_exports_in_three_formats_after_a_restart(tmp_path):
    async with serving(tmp_path) as served:
        session = await say_something(served)
        written = await export(served, session)
        assert written.headers["content-disposition"] == 'attachment; filename="pples-pears.json"'
        assert written.json()["session"]["session_id"] == session
        kinds = [update["sessionUpdate"] for update in written.json()["updates"]]
        assert kinds.count("agent_message_chunk") == 2
        html = await export(served, session, "html")
        assert "<script" not in html.text
        assert "&lt;script&gt;alert(1)" in html.text
        assert "sandbox" in html.headers["content-security-policy"]
    async with serving(tmp_path) as served:
        again = await export(served, session, "markdown")
        assert again.status_code == 200, again.text
        assert again.text.startswith('# Ápples & "pears"\n')
        assert "## Agent\n\n0:1:" in again.text


async def test_reader_of_one_session_exports_only_that(served):
    mine, other = await say_something(served), await say_something(served)
    _, code = await served.guard.shares.make(3600, "one", mine)
    headers = {"cookie": (await served.guard.redeem_share(code)).partition(";")[0]}
    assert (await export(served, mine, headers=headers)).status_code == 200
    for session, agent in [(other, "one"), (mine, "two"), ("no such session", "one"), ("", "one")]:
        assert (await export(served, session, agent=agent, headers=headers)).status_code == 403


async def test_session_whose_file_is_gone_is_refused(tmp_path):
    async with serving(tmp_path) as served:
        session = await say_something(served)
    async with serving(tmp_path) as served:
        for file in tmp_path.rglob("*.jsonl"):
            file.unlink()
        refused = await export(served, session)
        assert (refused.status_code, "cannot be opened" in refused.text) == (409, True)


@pytest.mark.parametrize(("session", "kind", "status"), [("nowhere", "json", 404), ("nowhere", "exe", 400)])
async def test_invalid_export_is_refused(served, session, kind, status):
    assert (await export(served, session, kind)).status_code == status
