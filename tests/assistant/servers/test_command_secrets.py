"""The secrets of a server added with `/mcp add` are stored nowhere, nor secrets in its questions."""

import json
import shlex
import sys

from dragoman.protocol import v1
from dragoman.recording.secrecy import hide_secrets
from dragoman.text.secret import hide_command_secrets
from tests.assistant.servers.talking import begin, call, connected, said, stdio, talking, text
from tests.assistant.servers.test_asking import FORM, User
from tests.assistant.servers.test_secrets import CANARY, files_with_canary
from tests.bridge.own_agent import own_agent, plain_prompt
from tests.bridge.viewers import join, serve
from tests.mcp.servers.commands import scripted
from tests.table import each_row


@each_row(
    ("written", "kept"),
    [
        ("/mcp add one TOKEN=x npx server --key y", "/mcp add one TOKEN=[hidden] npx [hidden]"),
        ("/mcp add one 'TOKEN=a b' npx", "/mcp add one TOKEN=[hidden] npx"),
        ("/mcp add one 'TOKEN=x", "/mcp add [hidden]"),
        ("/mcp add one https://me:pw@example.org/mcp?key=x#y", "/mcp add one https://example.org/mcp"),
        ("/mcp add one https://h.org/s/a1b2c3d4e5f6a7b8c9d0e1/mcp", "/mcp add one https://h.org/s/[hidden]/mcp"),
        (
            "/mcp add one --no-roots --sse http://example.org/sse?k=1",
            "/mcp add one --no-roots --sse http://example.org/sse",
        ),
        ("/mcp\tadd TOKEN=x", "/mcp\tadd TOKEN=[hidden]"),
        ("<task>\n/mcp add one TOKEN=x npx</task>", "<task>\n/mcp add one TOKEN=[hidden] npx</task>"),
        ("/mcp restart one", "/mcp restart one"),
        ("What does /mcp add one TOKEN=x do?", "What does /mcp add one TOKEN=x do?"),
    ],
)
def test_prompt_is_stored_without_the_added_servers_secrets(written, kept):
    assert hide_command_secrets(written) == kept
    line = json.dumps({"params": {"prompt": [{"type": "text", "text": written}]}}).encode()
    assert json.loads(hide_secrets(line))["params"]["prompt"][0]["text"] == kept


async def test_added_servers_secrets_are_in_no_file_and_no_replay(place):
    command = shlex.join(scripted(echo_env=["TOKEN"]))
    async with connected(place, call("one__echo"), text()) as (client, _):
        talk = await begin(client, place[0])
        assert "one is ready" in (await talk.ask(f"/mcp add one TOKEN={CANARY} {command}")).text
        assert "web failed" in (await talk.ask(f"/mcp add web http://me:{CANARY}@127.0.0.1:1/mcp?k={CANARY}")).text
        assert "[hidden]" in said((await talk.ask()).call)
        await talk.close()
        await talk.load()
        listed = await client.connection.call_extension("session/list", {})
    assert CANARY not in str(client.updates) + json.dumps(listed)
    assert files_with_canary(*place) == []


async def test_bridge_neither_stores_nor_shows_the_secrets(tmp_path):
    (tmp_path / "work").mkdir()
    async with serve(tmp_path / "home", own_agent(tmp_path)) as served:
        one, two = await join(served), await join(served, extensions=True)
        session = await one.new(cwd=str(tmp_path / "work"))
        await two.load(session, cwd=str(tmp_path / "work"))
        words = f"/mcp add one TOKEN={CANARY} {sys.executable} -c {CANARY}"
        await plain_prompt(one, session, words)
        await two.until(lambda message: "TOKEN=" in str(message))
        later = await join(served, extensions=True)
        await later.load(session, cwd=str(tmp_path / "work"))
        shown = [str(viewer.updates()) for viewer in (two, later)]
    assert all("/mcp add one TOKEN=[hidden]" in each and CANARY not in each for each in shown)
    assert files_with_canary(tmp_path) == []


async def test_server_question_does_not_repeat_its_secrets(place):
    fields = {"size": {"type": "string", "title": f"Size for {CANARY}"}}
    schema = {"type": "object", "properties": fields}
    question = {"message": f"I have {CANARY}. Which size?", "requestedSchema": schema}
    server = stdio(env={"TOKEN": CANARY}, elicit=question)
    async with talking(place, call("one__echo"), text(), servers=[server], capabilities=FORM) as (talk, _):
        user = User(talk.client, v1.ElicitationDeclineAction())
        await talk.ask()
    [asked] = user.asked
    assert asked.message == "one: I have [hidden]. Which size?"
    assert CANARY not in str(asked)
