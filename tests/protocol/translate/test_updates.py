"""Every update of each version round-trips through the other, with the exceptions of the table in the docs."""

import copy
from functools import partialmethod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.schema_instances import V1, V2
from tests.protocol.translate.conversation import answer, call, text, through_v1, through_v2, updated
from tests.table import each_row

V1_UPDATES = list(V1.instances(V1.defs["SessionUpdate"]))
V2_UPDATES = list(V2.instances(V2.defs["SessionUpdate"]))
EVERYTHING = {
    "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
    "subagents": {},
    "plan": {},
}
NAME = {"name": "a", "version": "1"}
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "words", "name": "Words"}]}


def opened_through_v2(capabilities=EVERYTHING):
    conversation = through_v2()
    conversation.client_sends(call(0, "initialize", protocolVersion=1, clientCapabilities=capabilities))
    conversation.agent_sends(answer(0, {"protocolVersion": 1}))
    conversation.client_sends(call(1, "session/new", cwd="/", mcpServers=[]))
    conversation.agent_sends(answer(1, {"sessionId": "s", "modes": MODES}))
    conversation.client.pop_messages()
    return conversation


def opened_through_v1():
    conversation = through_v1()
    conversation.client_sends(call(0, "initialize", protocolVersion=2, info=NAME))
    conversation.agent_sends(answer(0, {"protocolVersion": 2, "info": NAME, "capabilities": {"session": {}}}))
    conversation.client_sends(call(1, "session/new", cwd="/"))
    conversation.agent_sends(answer(1, {"sessionId": "s"}))
    conversation.client.pop_messages()
    return conversation


def updates_of(messages):
    assert all(each.get("method") == "session/update" for each in messages)
    return [each["params"]["update"] for each in messages]


def vary(update, suffix):
    """Return the update with other ids, so that a list is about several messages, calls, plans and terminals."""
    changed = copy.deepcopy(update)
    for holder in (changed, changed.get("plan", {})):
        for name in ("messageId", "toolCallId", "planId", "terminalId", "compactionId"):
            if isinstance(holder.get(name), str):
                holder[name] += suffix
    return changed


def lists_of(updates):
    varied = st.builds(vary, st.sampled_from(updates), st.sampled_from(["", "-2"]))
    return st.lists(varied, min_size=1, max_size=8)


def is_said_twice(update):
    """Return whether an update sets the mode that the next update sets as an option."""
    return ((update.get("_meta") or {}).get("dragoman/v2") or {}).get("isInOptions") is True


class V1Folding:
    """The updates of version 1, normalised for the exceptions of the table."""

    def __init__(self):
        self._calls = set()

    def fold(self, updates):
        return [self._fold(each) for each in updates if not is_said_twice(each)]

    def _fold(self, update):
        kind = update["sessionUpdate"]
        if kind.endswith("_chunk"):
            update = {name: each for name, each in update.items() if name != "messageId"}
        if kind in ("tool_call", "tool_call_update"):
            kind = "tool_call_update" if update["toolCallId"] in self._calls else "tool_call"
            self._calls.add(update["toolCallId"])
            given = without_nulls(update)
            # Version 1 requires a title for a new call. Its name or its id is used instead.
            stand_in = {"title": given.get("name", given["toolCallId"])} if kind == "tool_call" else {}
            update = {**stand_in, **given, "sessionUpdate": kind}
            if kind == "tool_call_update":
                update = {**update, "title": None} if update.get("title") == update["toolCallId"] else update
        return without_nulls(update)


def without_nulls(value):
    """Return the value without null, and without `_meta` and carried fields that are then empty."""
    if isinstance(value, dict):
        kept = {name: without_nulls(each) for name, each in value.items() if each is not None}
        return {name: each for name, each in kept.items() if name not in ("_meta", "dragoman/v2") or each}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@each_row("kind", sorted({each["sessionUpdate"] for each in V1_UPDATES}))
def test_version_1_update_round_trips(kind):
    for update in (each for each in V1_UPDATES if each["sessionUpdate"] == kind):
        conversation = opened_through_v2().agent_sends(updated(**update))
        assert V1Folding().fold(updates_of(conversation.client.pop_messages())) == V1Folding().fold([update])


@settings(max_examples=60, deadline=None)
@given(lists_of(V1_UPDATES))
def test_version_1_conversation_round_trips(updates):
    conversation = opened_through_v2().agent_sends(*(updated(**each) for each in updates))
    assert V1Folding().fold(updates_of(conversation.client.pop_messages())) == V1Folding().fold(updates)


class V2Folding:
    """The state that results from version 2 updates: upserts and chunks applied, in order of first mention."""

    def __init__(self):
        self.messages, self.calls, self.terminals, self.plans, self.others = {}, {}, {}, {}, []

    def fold(self, updates):
        for each in updates:
            self._apply(copy.deepcopy(each))
        messages = {name: (kind, joined(blocks)) for name, (kind, blocks) in self.messages.items() if blocks}
        return messages, self.calls, self.terminals, self.plans, self.others

    def _apply(self, update):
        kind = update.pop("sessionUpdate")
        if kind == "state_update" and update == {"state": "idle"}:
            return  # the default state of a session
        getattr(self, f"_apply_{kind}", lambda update: self.others.append((kind, without_nulls(update))))(update)

    def _apply_chunk(self, kind, update):
        self.messages.setdefault((kind, update["messageId"]), (kind, []))[1].append(update["content"])

    def _apply_message(self, kind, update):
        message = self.messages.setdefault((kind, update["messageId"]), (kind, []))
        if "content" in update:
            message[1][:] = update["content"] or []

    _apply_user_message = partialmethod(_apply_message, "user")
    _apply_agent_message = partialmethod(_apply_message, "agent")
    _apply_agent_thought = partialmethod(_apply_message, "thought")
    _apply_user_message_chunk = partialmethod(_apply_chunk, "user")
    _apply_agent_message_chunk = partialmethod(_apply_chunk, "agent")
    _apply_agent_thought_chunk = partialmethod(_apply_chunk, "thought")

    def _apply_tool_call_update(self, update):
        fields = self.calls.setdefault(update["toolCallId"], {"content": []})
        fields |= {name: each for name, each in update.items() if name != "_meta"}
        fields["content"] = list(fields["content"] or [])
        for name in [name for name, each in fields.items() if each is None]:
            del fields[name]

    def _apply_tool_call_content_chunk(self, update):
        fields = self.calls.setdefault(update["toolCallId"], {"content": []})
        fields["toolCallId"] = update["toolCallId"]
        fields["content"].append(update["content"])

    def _apply_terminal_update(self, update):
        fields = self.terminals.setdefault(update["terminalId"], {"output": []})
        if "output" in update:
            update["output"] = [(update["output"] or {}).get("data", "")]
        fields |= update

    def _apply_terminal_output_chunk(self, update):
        self.terminals.setdefault(update["terminalId"], {"output": []})["output"].append(update["data"])

    def _apply_plan_update(self, update):
        self.plans[update["plan"].get("planId", "")] = without_nulls(update["plan"])

    def _apply_plan_removed(self, update):
        self.plans.pop(update["planId"], None)


def joined(blocks):
    """Return the blocks with neighbouring plain texts joined."""
    made = []
    for block in blocks:
        if made and made[-1].keys() == block.keys() == {"type", "text"}:
            made[-1] = {"type": "text", "text": made[-1]["text"] + block["text"]}
        else:
            made.append(block)
    return made


@each_row("kind", sorted({each["sessionUpdate"] for each in V2_UPDATES}))
def test_version_2_update_round_trips(kind):
    for update in (each for each in V2_UPDATES if each["sessionUpdate"] == kind):
        conversation = opened_through_v1().agent_sends(updated(**update))
        assert V2Folding().fold(updates_of(conversation.client.pop_messages())) == V2Folding().fold([update])


def test_samples_include_every_update_and_block_type():
    for schema, updates in ((V1, V1_UPDATES), (V2, V2_UPDATES)):
        names = [
            each.get("properties", {}) for each in schema.defs["SessionUpdate"]["oneOf" if schema is V1 else "anyOf"]
        ]
        tags = {each["sessionUpdate"]["const"] for each in names if "const" in each.get("sessionUpdate", {})}
        assert tags <= {each["sessionUpdate"] for each in updates}
        blocks = {each["content"]["type"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"}
        assert blocks >= {"text", "image", "audio", "resource_link", "resource"}


@pytest.mark.extended
@settings(max_examples=60, deadline=None)
@given(lists_of(V2_UPDATES))
def test_version_2_conversation_round_trips(updates):
    # An update of a call sends the rest of its content, which is not sent for each chunk.
    calls = {each["toolCallId"] for each in updates if each["sessionUpdate"] == "tool_call_content_chunk"}
    updates = [*updates, *({"sessionUpdate": "tool_call_update", "toolCallId": each} for each in sorted(calls))]
    conversation = opened_through_v1().agent_sends(*(updated(**each) for each in updates))
    assert V2Folding().fold(updates_of(conversation.client.pop_messages())) == V2Folding().fold(updates)


def test_chunks_without_an_id_form_one_message():
    conversation = opened_through_v2()
    chunk = {"sessionUpdate": "agent_message_chunk", "content": text("a")}
    usage = {"sessionUpdate": "usage_update", "used": 1, "size": 2}
    plan = {"sessionUpdate": "plan", "entries": []}
    conversation.agent_sends(*(updated(**each) for each in (chunk, usage, chunk, plan, chunk)))
    ids = [each.get("messageId") for each in updates_of(conversation.client.pop_messages())]
    assert ids == ["m-1", None, "m-1", None, "m-2"]
