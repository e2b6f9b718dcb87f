"""The bridge as an application for other servers and frameworks."""

import asyncio
import re
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from dragoman.bridge import AgentSpec, create_app
from dragoman.client import connect_url
from dragoman.store.postgresql.errors import InvalidStoreAddressError
from dragoman.testing import steps
from tests.bridge.front.test_pages import HELLO, on_another_server
from tests.commands import scripted

AGENT = scripted([steps.Say("Hello from "), steps.Say("the bridge.")])
DOCS = Path(__file__).parent.parent.parent / "docs"


def make(tmp_path, port, prefix="", **options):
    return create_app({"mine": AGENT}, home=tmp_path, public_url=f"http://127.0.0.1:{port}{prefix}", **options)


async def answer_at(url, token):
    async with asyncio.timeout(50), connect_url(url, token=token) as agent:
        return await (await agent.new_session("/")).ask("Who are you?")


async def test_app_can_be_mounted_in_fastapi_under_a_prefix(tmp_path):
    made = []

    def mount(port):
        made.append(agents := make(tmp_path, port, "/tools/agents"))
        app = FastAPI(lifespan=agents.lifespan)
        app.mount("/tools/agents", agents)

        @app.get("/health")
        async def health():
            return "well"

        return app

    async with on_another_server(mount, lifespan="on") as port, httpx2.AsyncClient(follow_redirects=True) as http:
        base, token = f"http://127.0.0.1:{port}/tools/agents", made[0].token
        assert (await http.get(base)).status_code == 200
        assert (await http.get(f"{base}/static/js/app/app.js")).status_code == 200
        assert (await http.get(f"http://127.0.0.1:{port}/health")).json() == "well"
        assert (await http.post(f"{base}/acp", json=HELLO)).status_code == 401
        assert (await http.get(f"{base}/", headers={"host": "rebound.example"})).status_code == 403
        assert await answer_at(f"{base}/acp", token) == "Hello from the bridge."
        assert await answer_at(f"{base}/acp/mine", token) == "Hello from the bridge."
        assert token not in repr(made[0])
    async with make(tmp_path, 8000).lifespan():  # the home is free because everything was closed
        pass


async def test_server_runs_the_lifespan_of_the_app(tmp_path):
    made = []

    def alone(port):
        made.append(make(tmp_path, port, token="t" * 40))
        return made[0]

    async with on_another_server(alone, lifespan="on") as port:
        assert made[0].token == "t" * 40
        assert await answer_at(f"http://127.0.0.1:{port}/acp", made[0].token) == "Hello from the bridge."


async def test_missing_lifespan_is_reported(tmp_path):
    async with (
        on_another_server(lambda port: make(tmp_path, port), lifespan="off") as port,
        httpx2.AsyncClient() as http,
    ):
        answer = await http.get(f"http://127.0.0.1:{port}/")
        assert answer.status_code == 503
        assert "FastAPI(lifespan=app.lifespan)" in answer.text


async def test_home_of_another_bridge_fails_the_start(tmp_path):
    first, second, sent = make(tmp_path, 8000), make(tmp_path, 8001), []

    async def receive():
        return {"type": "lifespan.startup"}

    async def send(message):
        sent.append(message)

    async with first.lifespan():
        await second({"type": "lifespan"}, receive, send)
    assert sent[0]["type"] == "lifespan.startup.failed"
    assert str(tmp_path) in sent[0]["message"]


@pytest.mark.parametrize(
    ("agents", "problem"),
    [({}, "needs an agent"), ({"a/b": "x"}, "cannot be the name"), ({"a": AgentSpec("b", ("x",))}, "the same")],
)
def test_invalid_agents_are_refused(agents, problem, tmp_path):
    with pytest.raises(ValueError, match=problem):
        create_app(agents, home=tmp_path)


def test_command_can_be_a_string(tmp_path):
    app = create_app({"a": "my-agent --acp 'two words'"}, home=tmp_path)
    assert app.agents == (AgentSpec("a", ("my-agent", "--acp", "two words")),)


async def test_example_in_the_docs_serves_our_agent(tmp_path, monkeypatch):
    page = (DOCS / "bridge-protocol.md").read_text()
    [program, _] = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    names = {}

    def of_the_docs(port):
        monkeypatch.setenv("PUBLIC_URL", f"http://127.0.0.1:{port}/agents")
        exec(program, names)
        return names["app"]

    async with on_another_server(of_the_docs, lifespan="on") as port:
        assert await answer_at(f"http://127.0.0.1:{port}/agents/acp", names["agents"].token)


async def test_two_apps_on_one_store_share_sessions_and_access(address, tmp_path):
    made = {}

    def mount(port):
        made[port] = make(tmp_path / str(port), port, store=address, token="t" * 43)
        return made[port]

    async with on_another_server(mount, lifespan="on") as one, on_another_server(mount, lifespan="on") as two:
        async with asyncio.timeout(50), connect_url(f"http://127.0.0.1:{one}/acp", token=made[one].token) as agent:
            session = await agent.new_session("/")
            assert await session.ask("Who are you?") == "Hello from the bridge."
        async with asyncio.timeout(50), connect_url(f"http://127.0.0.1:{two}/acp", token=made[two].token) as agent:
            listed = []
            while not listed:  # a node that has just started is notified a little later
                listed = [each.session_id async for each in agent.list_sessions()]
        assert listed == [session.id]
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {made[one].token}"}) as http:
            link = (await http.post(f"http://127.0.0.1:{one}/link")).json()["path"]
            opened = [(await http.get(f"http://127.0.0.1:{port}/{link}")).status_code for port in (two, one)]
        assert opened == [303, 401]


def test_invalid_store_is_refused(tmp_path):
    with pytest.raises(InvalidStoreAddressError, match="postgresql://USER@HOST/DATABASE"):
        make(tmp_path, 8000, store="mysql://db")
