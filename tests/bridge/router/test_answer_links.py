"""Approval links: their content, their options, their life, and that an answer counts once."""

import json

import pytest

from dragoman.bridge.guard.credentials import hash_code
from tests.bridge.viewers import join, serve

ONCE = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
ALWAYS = {"optionId": "always", "name": "Always", "kind": "allow_always"}
NO = {"optionId": "no", "name": "No", "kind": "reject_once"}
SHOWN = {"call": {"title": "Remove it"}, "cwd": "/work"}


class Asked:
    """An open question, and a link to it."""

    def __init__(self, served, viewer, session, prompt, asked):
        self.served = served
        self.links = served.router.links
        self.viewer = viewer
        self.session = session
        self.prompt = prompt
        self.asked = asked

    async def make(self, viewer=None, **changes):
        params = {"sessionId": self.session, "requestId": self.asked["id"], "shown": SHOWN, **changes}
        return await (viewer or self.viewer).ask("_dragoman/question/link", params)

    async def link(self):
        """Create a link, and return the hash of its code and the time when it expires."""
        made = (await self.make())["result"]
        return hash_code(made["path"].removeprefix("answer#")), made["expires"] / 1000

    def open(self, hash_):
        return self.served.open_question(hash_).described

    def choose(self, hash_, option):
        return self.served.open_question(hash_, option)

    async def outcome(self):
        await self.viewer.answer(self.prompt)
        return json.loads(self.viewer.said()[-1])["result"]["outcome"]


@pytest.fixture
async def asked(tmp_path):
    async with serve(tmp_path) as served:
        viewer = await join(served, extensions=True)
        session = await viewer.new()
        prompt = viewer.start_prompt(session, {"ask": [ONCE, ALWAYS, NO]})
        yield Asked(served, viewer, session, prompt, await viewer.asked())


async def test_link_offers_one_time_options_and_settles_once(asked):
    link, _ = await asked.link()
    open_link = asked.open(link)
    assert (open_link["state"], json.loads(bytes(open_link["shown"]))) == ("open", SHOWN)
    assert [bytes(option["optionId"]) for option in open_link["options"]] == [b'"yes"', b'"no"']
    assert not asked.choose(link, "always").is_offered
    assert asked.choose(link, "no").is_offered
    assert asked.choose(link, "yes").is_offered  # too late, as the state shows
    assert await asked.outcome() == {"outcome": "selected", "optionId": "no"}
    assert asked.open(link) == {"agent": "one", "state": "answered", "by": "link", "choice": "No"}
    settled = await asked.viewer.until(lambda message: message.get("method") == "_dragoman/settled")
    assert settled["params"]["by"] == "link"


async def test_link_ends_by_timeout_or_with_its_question(asked):
    (early, _), (late, end) = await asked.link(), await asked.link()
    asked.links.clock = lambda: end + 1
    assert asked.open(early)["state"] == "over"
    assert asked.choose(early, "yes").described["state"] == "over"
    assert asked.open(late)["state"] == "over", "an answer after the time counted"
    asked.viewer.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": asked.session}})
    assert await asked.outcome() == {"outcome": "cancelled"}
    assert asked.open(late) == {"agent": "one", "state": "answered", "by": "cancel", "choice": None}
    assert asked.served.open_question(hash_code("another")) is None


async def test_link_is_made_only_by_a_viewer_that_may_answer(asked):
    reader = await join(asked.served, read_only=True, extensions=True)
    await reader.load(asked.session)
    assert "read-only" in str((await asked.make(reader))["error"])
    assert "is no longer open" in str((await asked.make(requestId=12345))["error"])
    asked.viewer.choose(asked.asked)
    await asked.outcome()
    assert "is no longer open" in str((await asked.make())["error"])
