"""The page's session lists, with a bridge that the test plays."""

PLAYED = """
  const answers = values[0];
  const asked = [];
  const state = {
    sessions: new Map(),
    noteSessions(list) { for (const facts of list) state.sessions.set(facts.sessionId, facts); },
    setSessions(list) { state.sessions.clear(); state.noteSessions(list); },
    touchSessions() {},
  };
  const request = async (method, params) => {
    asked.push([method, params]);
    // Slower than everything that does not wait for an answer.
    await new Promise((resolve) => setTimeout(resolve, 5));
    return answers[method].length > 1 ? answers[method].shift() : answers[method][0];
  };
  const initialized = { _meta: { dragoman: { agentLists: true } } };
  const lists = new m.SessionLists({ state, initialized, connection: { request } });
"""

SESSIONS, OF_AGENT = "_dragoman/sessions", "session/list"


async def play(modules, body, **answers):
    """Run a script with `lists`, `state` and `asked`. Each method has a list of answers, and the last one repeats."""
    named = {SESSIONS: answers["sessions"], OF_AGENT: answers.get("of_agent", [{"sessions": []}])}
    return await modules.run("lists/session_lists", PLAYED + body, named)


def facts(name, **more):
    return {"sessionId": name, "cwd": "/work", "state": "asleep", "pending": 0, "viewers": 0, **more}


async def test_session_list_waits_for_the_agents_page(modules):
    of_agent = [{"sessions": [facts("a")], "nextCursor": "2"}, {"sessions": [facts("b")]}]
    body = """
      await lists.agent.restart();
      const older = lists.agent.more();
      const all = await lists.all({ search: "", groups: ["sessions"] });
      await older;
      return [all.map(({ sessionId }) => sessionId), asked.filter(([method]) => method === "session/list").length];
    """
    assert await play(modules, body, sessions=[{"sessions": []}], of_agent=of_agent) == [["a", "b"], 2]


async def test_lists_of_a_previous_agent_are_dropped(modules):
    first = {"sessions": [facts("a")], "nextCursor": "2", "counts": {"sessions": 9, "runs": 2, "archived": 3}}
    body = """
      await lists.begin(request);
      await lists.agent.restart();
      lists.forget();
      state.sessions.clear();
      const { agent, groups, isEmpty } = lists;
      return [agent.hasMore, groups.sessions.hasMore, lists.count("archived"), isEmpty];
    """
    of_agent = [{"sessions": [facts("b")], "nextCursor": "2"}]
    assert await play(modules, body, sessions=[first], of_agent=of_agent) == [False, False, 0, True]


async def test_session_known_to_agent_and_bridge_counts_once(modules):
    counts = {"sessions": 0, "runs": 0, "archived": 5}
    body = """
      const opened = { sessionId: "a", archived: true, state: "idle", pending: 0, viewers: 1 };
      state.noteSessions([{ ...opened, elsewhere: true }]);
      lists.apply(opened);
      state.noteSessions([opened]);
      await new Promise((resolve) => { state.touchSessions = resolve; });
      return lists.count("archived");
    """
    assert await play(modules, body, sessions=[{"sessions": [], "counts": counts}]) == 5
