"""Links to one question: what they show and offer, how long they work, and that an answer counts once."""

import json

import pytest

from tests.bridge.viewers import join, serve

ONCE = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
ALWAYS = {"optionId": "always", "name": "Always", "kind": "allow_always"}
NO = {"optionId": "no", "name": "No", "kind": "reject_once"}
SHOWN = {"call": {"title": "Remove it"}, "cwd": "/work"}


class Asked:
    """A question that waits, and a link to it."""

    def __init__(self, served, viewer, session, prompt, asked):
        self.served = served
        self.links = served.router.questions.links
        self.viewer = viewer
        self.session = session
        self.prompt = prompt
        self.asked = asked

    async def make(self, viewer=None, **changes):
        params = {"sessionId": self.session, "requestId": self.asked["id"], "shown": SHOWN, **changes}
        return await (viewer or self.viewer).ask("_dragoman/question/link", params)

    async def link(self):
        path = (await self.make())["result"]["path"]
        return self.links.find(path.removeprefix("answer#"))

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


async def test_a_link_offers_what_holds_once_and_settles_the_question_once(asked):
    link = await asked.link()
    open_link = asked.links.describe(link)
    assert (open_link["state"], json.loads(bytes(open_link["shown"]))) == ("open", SHOWN)
    assert [bytes(option["optionId"]) for option in open_link["options"]] == [b'"yes"', b'"no"']
    assert not asked.links.answer(link, "always")
    assert asked.links.answer(link, "no")
    assert asked.links.answer(link, "yes")  # too late, and said so by the state
    assert await asked.outcome() == {"outcome": "selected", "optionId": "no"}
    used = {"state": "answered", "by": "link", "choice": "No"}
    assert asked.links.describe(link) == used
    settled = await asked.viewer.until(lambda message: message.get("method") == "_dragoman/settled")
    assert settled["params"]["by"] == "link"


async def test_a_link_ends_with_its_time_or_with_its_question(asked):
    early, late = await asked.link(), await asked.link()
    asked.links.clock = lambda: late.expires
    assert asked.links.describe(early) == {"state": "over"}
    asked.links.answer(early, "yes")
    assert asked.links.describe(late)["state"] == "over", "an answer after the time counted"
    asked.viewer.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": asked.session}})
    assert await asked.outcome() == {"outcome": "cancelled"}
    assert asked.links.describe(late) == {"state": "answered", "by": "cancel", "choice": None}
    assert asked.links.find("another") is None


async def test_links_are_made_by_those_who_were_asked_and_may_answer(asked):
    reader = await join(asked.served, read_only=True, extensions=True)
    await reader.load(asked.session)
    assert "may only read" in str((await asked.make(reader))["error"])
    assert "waits no longer" in str((await asked.make(requestId=12345))["error"])
    asked.viewer.choose(asked.asked)
    await asked.outcome()
    assert "waits no longer" in str((await asked.make())["error"])
