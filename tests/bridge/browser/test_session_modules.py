"""The page's transcript of a session's updates and status."""

import random

from tests.bridge.history_parts import random_updates


def chunk(kind, text, message_id=None, **more):
    """Return an update with a piece of text."""
    update = {"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": text}, **more}
    return update if message_id is None else {**update, "messageId": message_id}


async def items_of(modules, *updates):
    """Return the transcript items of updates. An update may be paired with its time."""
    body = """
      const transcript = new m.Transcript();
      values[0].forEach(([update, time]) => transcript.apply(update, time));
      return transcript.items.map((item) => item.type === "tool"
        ? { id: item.id, ...item.call }
        : { role: item.role, blocks: item.blocks });
    """
    return await modules.run("session/transcript", body, [u if isinstance(u, tuple) else (u, None) for u in updates])


async def test_chunks_of_one_message_become_one_message(modules):
    items = await items_of(modules, chunk("agent_message", "Hel", "a"), chunk("agent_message", "lo", "a"))
    assert items == [{"role": "agent", "blocks": [{"type": "text", "text": "Hello"}]}]


async def test_another_message_id_begins_another_message(modules):
    items = await items_of(modules, chunk("agent_message", "one", "a"), chunk("agent_message", "two", "b"))
    assert [item["blocks"][0]["text"] for item in items] == ["one", "two"]


async def test_thought_and_answer_are_separate_without_ids(modules):
    items = await items_of(
        modules, chunk("agent_thought", "hm"), chunk("agent_message", "so"), chunk("agent_thought", "!")
    )
    assert [item["role"] for item in items] == ["thought", "agent", "thought"]


async def test_text_after_a_tool_call_follows_it(modules):
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look"}
    items = await items_of(modules, chunk("agent_message", "a", "m"), call, chunk("agent_message", "b", "m"))
    assert [item.get("title") or item["blocks"][0]["text"] for item in items] == ["a", "Look", "b"]


async def test_blocks_of_one_prompt_are_one_message(modules):
    link = {
        "sessionUpdate": "user_message_chunk",
        "content": {"type": "resource_link", "uri": "file:///a", "name": "a"},
    }
    items = await items_of(
        modules, (chunk("user_message", "one"), 1000), (link, 1001), (chunk("user_message", "two"), 5000)
    )
    assert [len(item["blocks"]) for item in items] == [2, 1]


async def test_an_update_of_a_tool_call_changes_only_what_it_names(modules):
    items = await items_of(
        modules,
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "kind": "execute", "rawInput": {"a": 1}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "title": None},
    )
    wanted = {"id": "t", "title": "Run", "kind": "execute", "status": "completed", "rawInput": {"a": 1}}
    assert items == [wanted]


async def test_update_of_an_unknown_tool_call_creates_it(modules):
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "x", "status": "failed"}
    assert await items_of(modules, update) == [{"id": "x", "title": "", "kind": "other", "status": "failed"}]


async def test_withdrawn_message_is_removed_but_not_the_next(modules):
    void = chunk("agent_message", "", "a", _meta={"dragoman/void": True})
    body = """
      const transcript = new m.Transcript();
      values[0].forEach((update) => transcript.apply(update));
      return transcript.items.map((item) => [item.blocks[0].text, item.void]);
    """
    updates = [chunk("agent_message", "Half", "a"), void, chunk("agent_message", "All", "b"), void]
    assert await modules.run("session/transcript", body, updates) == [["Half", True], ["All", False]]


async def test_notice_is_between_messages(modules):
    body = """
      const transcript = new m.Transcript();
      values[0].forEach((update) => transcript.apply(update));
      return transcript.items.map(({ type, severity, title, description }) => [type, severity, title, description]);
    """
    notice = {"sessionUpdate": "notice", "severity": "warning", "title": "Slow", "description": "Very"}
    updates = [chunk("agent_message", "a", "1"), notice, {**notice, "title": ""}]
    items = await modules.run("session/transcript", body, updates)
    assert [item[0] for item in items] == ["message", "notice"]
    assert items[1] == ["notice", "warning", "Slow", "Very"]


async def test_an_unknown_update_changes_nothing(modules):
    assert await items_of(modules, {"sessionUpdate": "_somebody/else", "content": 1}) == []


async def test_session_info_sets_servers_and_title(modules):
    body = """
      const transcript = new m.Transcript();
      const info = (fields) => transcript.apply({ sessionUpdate: "session_info_update", ...fields });
      const changed = [info({ title: "T" }), info({ _meta: { "dragoman/mcp": [{ name: "files" }] } })];
      return [changed, transcript.title, transcript.servers];
    """
    assert await modules.run("session/transcript", body) == [["title", "servers"], "T", [{"name": "files"}]]


async def test_turn_end_keeps_its_position(modules):
    body = """
      const transcript = new m.Transcript();
      const say = (text) => transcript.apply({ sessionUpdate: "user_message_chunk", content: { type: "text", text } });
      const end = (told) =>
        transcript.apply({ sessionUpdate: "session_info_update", _meta: { "dragoman/turn": told } });
      say("one");
      end({ error: { code: 1, message: "no" } });
      say("two");
      end({ stopReason: "cancelled" });
      return transcript.items.map((item) => item.error?.message ?? item.stopReason ?? item.blocks[0].text);
    """
    assert await modules.run("session/transcript", body) == ["one", "no", "two", "cancelled"]


async def test_turn_time_ends_with_its_work(modules):
    body = """
      const transcript = new m.Transcript();
      for (const [update, time] of values[0]) transcript.apply(update, time);
      transcript.endTurn();
      return transcript.items.filter((item) => item.role === "user").map((item) => item.turn.ms);
    """
    later = [
        ({"sessionUpdate": "current_mode_update", "currentModeId": "ask"}, 15_000),
        ({"sessionUpdate": "config_option_update", "configOptions": []}, 16_000),
        ({"sessionUpdate": "available_commands_update", "availableCommands": []}, 17_000),
        ({"sessionUpdate": "session_info_update", "title": "T"}, 18_000),
        ({"sessionUpdate": "usage_update", "used": 1, "size": 2}, 19_000),
    ]
    ended = {"sessionUpdate": "session_info_update", "_meta": {"dragoman/turn": {"stopReason": "cancelled"}}}
    updates = [
        (chunk("user_message", "one", "1"), 1_000),
        (chunk("agent_message", "a", "2"), 1_300),
        *later,
        (chunk("user_message", "two", "3"), 20_000),
        (chunk("agent_message", "b", "4"), 20_100),
        (ended, 20_500),
        (chunk("agent_message", "unasked", "5"), 60_000),
    ]
    assert await modules.run("session/transcript", body, updates) == [300, 500]


FACTS = """
  const facts = ({ items, plan, usage, commands, servers, title, turn, tools, entities, firstTurn }) => ({
    items: items.map(({ version, given, updates, place, terminals, ...item }) => ({
      ...item, terminals: terminals && [...terminals],
    })),
    plan, usage, commands, servers, title, turn: turn && { ...turn, item: turn.item?.n },
    first: firstTurn?.item.n, known: [[...tools.keys()].sort(), [...entities.keys()].sort()],
    same: [...tools.values(), ...entities.values()].every((item) => items[item.n] === item),
  });
"""

JOIN = """
  const [updates, cuts] = values;
  const read = (from, to, isWhole) => {
    const made = new m.Transcript({ isWhole });
    updates.slice(from, to).forEach(([update, time]) => made.apply(structuredClone(update), time));
    return made;
  };
  const whole = read(0, updates.length, true);
  const ends = [...cuts, updates.length];
  const joined = read(ends.at(-2), ends.at(-1), false);
  for (let n = ends.length - 3; n >= 0; n -= 1) joined.prepend(read(ends[n], ends[n + 1], n === 0));
  for (const each of [whole, joined]) each.endTurn();
  return [facts(whole), facts(joined)];
"""


def history(random, count):
    """Return updates with their times, as parts of a history have them: a message of the user is in one part."""
    updates = random_updates(random, count)
    updates += [
        {"sessionUpdate": "session_message_chunk", "messageId": "m", "content": {"type": "text", "text": f"{n}"}}
        for n in range(5)
    ]
    updates += [chunk("agent_message", "", random.choice("ab"), _meta={"dragoman/void": True}) for _ in range(3)]
    random.shuffle(updates)
    return [(update, 1_000 * at) for at, update in enumerate(updates)]


async def test_joined_parts_equal_the_whole_history(modules):
    for seed in range(30):
        chance = random.Random(seed)
        updates = history(chance, 5 * 2 ** (seed % 7))
        kinds = [update["sessionUpdate"] for update, _ in updates]
        cuts = sorted({0, *(chance.randrange(len(updates)) for _ in range(chance.randrange(1, 9)))})
        cuts = [0, *(at for at in cuts[1:] if {kinds[at - 1], kinds[at]} != {"user_message_chunk"})]
        if len(cuts) == 1:
            cuts.append(len(updates))
        whole, joined = await modules.run("session/transcript", FACTS + JOIN, updates, cuts)
        assert joined == whole, f"seed {seed}"


async def test_settings_of_earlier_parts_do_not_replace_later_ones(modules):
    body = """
      const [plan, usage] = values;
      const part = (...updates) => {
        const made = new m.Transcript({ isWhole: false });
        updates.forEach((update) => made.apply(update, 1));
        return made;
      };
      const user = { sessionUpdate: "user_message_chunk", content: { type: "text", text: "x" } };
      const [one, two, three] = [part(user, usage(7)), part(plan("pending")), part(user, usage(9))];
      const found = part(plan("completed"), usage(4));
      const sums = [];
      for (const each of [one, two, three]) {
        each.endTurn();
        each.adopt(found);
        sums.push([each.items[0]?.turn?.cost?.amount ?? null, each.plan?.[0].status ?? null, each.usage.used]);
      }
      return sums;
    """
    helpers = """
      values = [
        (status) => ({ sessionUpdate: "plan", entries: [{ content: "x", priority: "low", status }] }),
        (used) => ({ sessionUpdate: "usage_update", used, size: 9, cost: { amount: used, currency: "USD" } }),
      ];
    """
    sums = await modules.run("session/transcript", helpers + body)
    assert sums == [[3, None, 7], [None, "pending", 4], [5, None, 9]]
