"""The page's transcript of a session's updates and status."""


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
