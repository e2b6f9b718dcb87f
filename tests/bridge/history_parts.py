"""Reading a history in parts, random updates for it, and the conversation that updates make."""

import json

CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
SETTINGS = {"plan", "usage_update", "available_commands_update"}


def random_updates(random, count):
    """Return updates of every kind, in an order that no agent would choose."""
    updates = []
    while len(updates) < count:
        kind = random.choices((*CHUNKS, "tool", "setting", "other"), (1, 8, 3, 4, 2, 1))[0]
        for _ in range(random.choice((1, 1, 3, 40))):
            updates.append(_random_update(random, kind, len(updates)))
    return updates


def _random_update(random, kind, number):
    if kind in CHUNKS:
        content = {"type": "text", "text": f"{number} "}
        if random.random() < 0.05:
            content = {"type": "resource_link", "uri": "file:///a", "name": f"{number}"}
        named = {"messageId": random.choice("ab")} if random.random() < 0.2 else {}
        return {"sessionUpdate": kind, "content": content, **named}
    if kind == "tool":
        call = {"toolCallId": f"call-{random.randrange(8)}"}
        if random.random() < 0.3:
            output = {"terminal_output": {"terminal_id": "t", "data": f"{number} "}}
            return {"sessionUpdate": "tool_call_update", **call, "_meta": output}
        fields = {"title": f"Call {number}", "status": random.choice(("pending", "completed")), "kind": None}
        return {"sessionUpdate": random.choice(("tool_call", "tool_call_update")), **call, **fields}
    if kind == "setting":
        name = random.choice(sorted(SETTINGS))
        fields = {
            "plan": {"entries": [{"content": f"{number}", "priority": "low", "status": "pending"}]},
            "usage_update": {"used": number, "size": 1_000, "cost": {"amount": number, "currency": "USD"}},
            "available_commands_update": {"availableCommands": [{"name": f"c{number}", "description": ""}]},
        }
        return {"sessionUpdate": name, **fields[name]}
    return random.choice(
        (
            {"sessionUpdate": "session_info_update", "title": f"Title {number}"},
            {"sessionUpdate": "session_info_update", "_meta": {"dragoman/turn": {"stopReason": "end_turn"}}},
            {"sessionUpdate": "session_info_update", "_meta": {"dragoman/turn": {"stopReason": "cancelled"}}},
            {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed", "summary": []},
            {"sessionUpdate": "_somebody/else", "n": number},
        )
    )


def conversation_of(updates):
    """Return the conversation that updates make, without the order of settings."""
    made, settings, calls = [], {}, {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in SETTINGS:
            settings[kind] = update
        elif kind in CHUNKS and kind != CHUNKS[0]:
            key = [kind, update.get("messageId")]
            if not made or made[-1][:2] != key:
                made.append([*key, []])
            blocks, content = made[-1][2], update["content"]
            if content["type"] == "text" and blocks and isinstance(blocks[-1], str):
                blocks[-1] += content["text"]
            else:
                blocks.append(content["text"] if content["type"] == "text" else content)
        elif kind in {"tool_call", "tool_call_update"}:
            if update["toolCallId"] not in calls:
                calls[update["toolCallId"]] = {"output": ""}
                made.append(["tool", calls[update["toolCallId"]]])
            call = calls[update["toolCallId"]]
            call |= {name: value for name, value in update.items() if value is not None and name != "sessionUpdate"}
            call["output"] += call.pop("_meta", {}).get("terminal_output", {}).get("data", "")
        else:
            made.append([kind, update])
    return made, settings


async def read_parts(ask, session, before):
    """Return the entries of all parts, first to last, and the number of parts. `ask` returns a result."""
    entries, count = [], 0
    while before is not None:
        part = await ask("_dragoman/history", {"sessionId": session, "before": before})
        assert part["updates"], "a part is empty"
        entries = part["updates"] + entries
        before, count = part["before"], count + 1
    return entries, count


def replayed(messages, session):
    """Return the updates that a viewer received."""
    seen = (json.loads(message) if isinstance(message, bytes) else message for message in messages)
    return [
        each["params"]["update"]
        for each in seen
        if each.get("method") == "session/update" and each["params"]["sessionId"] == session
    ]
