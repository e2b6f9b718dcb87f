"""The lists of the page: pages in a stable order, and facts about sessions on later pages."""

from itertools import chain

import pytest

from dragoman.store import PAGE_SESSIONS
from tests.bridge.earlier_sessions import write_sessions
from tests.bridge.viewers import OPTIONS, RESUMING, agent, join, serve

INVALID_PARAMS = -32602


async def ask(viewer, **params):
    return (await viewer.ask("_dragoman/sessions", params))["result"]


async def walk(viewer, **params):
    """Return the ids of all pages of a list."""
    pages, cursor = [], {}
    while True:
        answer = await ask(viewer, **params, **cursor)
        pages.append(ids(answer))
        if "nextCursor" not in answer:
            return pages
        cursor = {"cursor": answer["nextCursor"]}


def ids(answer):
    return [each["sessionId"] for each in answer["sessions"]]


def agent_with(tmp_path, *sessions):
    """An agent that still has some sessions of the earlier run."""
    store = tmp_path / "agent"
    store.mkdir()
    for each in sessions:
        (store / each).touch()
    return agent(store=str(store), capabilities=RESUMING)


async def test_session_pages_are_latest_first_without_repeats(tmp_path):
    written = write_sessions(tmp_path, "one", 2 * PAGE_SESSIONS + 50)
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        pages = await walk(one)
        assert [len(page) for page in pages] == [PAGE_SESSIONS, PAGE_SESSIONS, 50]
        assert list(chain(*pages)) == written
        assert ids(await ask(one, limit=1_000)) == written
        fresh = await one.new()
        assert ids(await ask(one, limit=2)) == [fresh, written[0]]


async def test_list_cursor_stays_valid_when_sessions_change(tmp_path):
    written = write_sessions(tmp_path, "one", 30)
    async with serve(tmp_path, agent_with(tmp_path, written[20])) as served:
        one = await join(served, extensions=True)
        first = await ask(one, limit=10)
        await one.prompt(await one.new(), {"say": "a new one"})
        await one.ask("session/delete", {"sessionId": written[9]})  # the session that the cursor names
        await one.ask("session/delete", {"sessionId": written[12]})
        await one.load(written[20])
        await one.prompt(written[20], {"say": "it moves up"})
        rest = await ask(one, cursor=first["nextCursor"])
        assert ids(rest) == [each for each in written[10:] if each not in (written[12], written[20])]


async def test_groups_are_separate_lists_and_follow_the_labels(tmp_path):
    labels = {number: {"archived": True} for number in range(20)} | {
        21: {"origin": "run"},
        22: {"parent": "earlier-23"},
    }
    written = write_sessions(tmp_path, "one", 25, labels=labels)
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        found = await ask(one, groups=["sessions"])
        assert ids(found) == [written[20], written[23], written[24]]
        assert found["counts"] == {"sessions": 3, "runs": 1, "archived": 20}
        assert ids(await ask(one, groups=["runs"])) == [written[21]]
        assert list(chain(*await walk(one, groups=["archived"], limit=8))) == written[:20]
        assert written[22] not in ids(await ask(one))
        await one.ask("session/archive", {"sessionId": written[24]})
        await one.ask("session/unarchive", {"sessionId": written[5]})
        found = await ask(one, groups=["sessions"])
        assert ids(found) == [written[5], written[20], written[23]]
        assert found["counts"] == {"sessions": 3, "runs": 1, "archived": 20}
        listed = (await one.ask("session/list", {"archived": "only"}))["result"]["sessions"]
        assert [each["sessionId"] for each in listed] == [*written[:5], *written[6:20], written[24]]


async def test_titles_and_projects_of_all_sessions_are_searched(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.bridge.delivery.stored_histories.SEARCHED_AT_ONCE", 7)
    labels = {290: {"title": "The Yellow plan"}, 291: {"title": "yellow, archived", "archived": True}}
    written = write_sessions(tmp_path, "one", 300, projects=2, labels=labels)
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        assert ids(await ask(one, search="yellow")) == written[290:292]
        assert ids(await ask(one, search="plan YELLOW")) == [written[290]]
        assert ids(await ask(one, search="part project-1 299")) == [written[299]]
        assert ids(await ask(one, search="earlier")) == []  # ids and the other parts of paths are not searched
        assert list(chain(*await walk(one, search="project-0", limit=40))) == [
            each for number, each in enumerate(written) if number % 2 == 0
        ]
        fresh = await one.new()
        await one.ask("session/set_title", {"sessionId": fresh, "title": "Yellow too"})
        assert ids(await ask(one, search="yellow", limit=1)) == [fresh]
        await one.ask("session/set_title", {"sessionId": written[290], "title": "The blue plan"})
        assert ids(await ask(one, search="yellow")) == [fresh, written[291]]
        assert ids(await ask(one, search="blue")) == [written[290]]


async def test_projects_have_their_latest_sessions_and_a_cursor(tmp_path):
    labels = {0: {"archived": True}}
    written = write_sessions(tmp_path, "one", 130, projects=40, labels=labels)
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        first = (await one.ask("_dragoman/projects"))["result"]
        assert [each["cwd"] for each in first["projects"]] == [f"/earlier/project-{number}" for number in range(1, 31)]
        assert ids(first["projects"][0]) == [written[1], written[41], written[81], written[121]]
        rest = (await one.ask("_dragoman/projects", {"cursor": first["nextCursor"]}))["result"]
        # Its latest session is archived, so the next session decides its place.
        assert [each["cwd"] for each in rest["projects"]] == [
            f"/earlier/project-{number}" for number in (*range(31, 40), 0)
        ]
        assert "nextCursor" not in rest
    write_sessions(tmp_path / "other", "one", 12)
    async with serve(tmp_path / "other") as served:
        one = await join(served, extensions=True)
        [project] = (await one.ask("_dragoman/projects"))["result"]["projects"]
        more = await ask(one, groups=["sessions"], cwd=project["cwd"], cursor=project["nextCursor"])
        assert len({*ids(project), *ids(more)}) == 12


async def test_busy_sessions_are_listed_from_any_page(tmp_path):
    written = write_sessions(tmp_path, "one", 40)
    async with serve(tmp_path, agent_with(tmp_path, written[39])) as served:
        one, two = await join(served, extensions=True), await join(served, extensions=True)
        await one.load(written[39])
        prompt = one.start_prompt(written[39], {"ask": OPTIONS})
        asked = await one.asked()
        answer = await ask(two, limit=0)
        assert ids({"sessions": answer["busy"]}) == [written[39]]
        assert answer["sessions"] == []
        one.choose(asked)
        await one.answer(prompt)
        assert (await ask(two, limit=0))["busy"] == []


async def test_reader_of_one_session_sees_no_others(tmp_path):
    written = write_sessions(tmp_path, "one", 5)
    async with serve(tmp_path) as served:
        reader = await join(served, only=written[3], read_only=True, extensions=True)
        found = await ask(reader)
        assert ids(found) == [written[3]]
        assert found["counts"] == {"sessions": 1, "runs": 0, "archived": 0}
        assert ids(await ask(reader, ids=written)) == [written[3]]
        assert ids(await ask(reader, search="part")) == [written[3]]
        [project] = (await reader.ask("_dragoman/projects"))["result"]["projects"]
        assert ids(project) == [written[3]]


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"cursor": "zzz"}, "cursor"),
        ({"limit": 1_001}, "limit"),
        ({"limit": -1}, "limit"),
        ({"groups": ["all"]}, "groups"),
        ({"search": "x" * 201}, "search"),
        ({"ids": ["x"] * 101}, "ids"),
    ],
)
async def test_wrong_list_request_is_refused_with_the_problem(tmp_path, params, word):
    async with serve(tmp_path) as served:
        error = (await (await join(served, extensions=True)).ask("_dragoman/sessions", params))["error"]
        assert error["code"] == INVALID_PARAMS
        assert word in str(error)


async def test_cursor_of_another_list_is_refused(tmp_path):
    write_sessions(tmp_path, "one", 5)
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        cursor = (await ask(one, limit=2, groups=["sessions"]))["nextCursor"]
        for other in ({}, {"groups": ["runs"]}, {"groups": ["sessions"], "search": "part"}):
            assert "error" in await one.ask("_dragoman/sessions", {**other, "cursor": cursor})
        assert "error" in await one.ask("_dragoman/projects", {"cursor": cursor})
