"""Version 1 turns become version 2 states, and states become responses to version 1 prompts."""

import pytest

from dragoman.protocol.translate.turn import MAX_HELD_PROMPTS
from tests.protocol.translate.conversation import (
    answer,
    call,
    fail,
    notification,
    text,
    updated,
    v1_client_v2_agent,
    v2_client_v1_agent,
)

OPTIONS = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
CHUNK = updated(sessionUpdate="agent_message_chunk", messageId="a", content=text("Hi"))


def sketch(messages):
    """Return a word or two per message."""
    return [_sketch(each) for each in messages]


def _sketch(message):
    update = message.get("params", {}).get("update", {})
    if update.get("sessionUpdate") == "state_update":
        return " ".join(str(update[name]) for name in ("state", "stopReason") if name in update)
    if update:
        return update["sessionUpdate"]
    if "error" in message:
        return f"{message['id']}: {message['error']['code']}"
    return f"{message['id']}: {sorted(message['result'])}" if "result" in message else message["method"]


def prompt(request_id=1, words="go"):
    return call(request_id, "session/prompt", sessionId="s", prompt=[text(words)])


def permission(request_id=7):
    return call(request_id, "session/request_permission", sessionId="s", toolCall={"toolCallId": "t"}, options=OPTIONS)


class TestV2Client:
    """A version 2 client with a version 1 agent."""

    @pytest.fixture
    def talk(self):
        conversation = v2_client_v1_agent()
        info = {"name": "c", "version": "1"}
        conversation.client_sends(call(0, "initialize", protocolVersion=2, info=info))
        capabilities = {"sessionCapabilities": {"close": {}, "resume": {}}, "loadSession": True}
        conversation.agent_sends(answer(0, {"protocolVersion": 1, "agentCapabilities": capabilities}))
        conversation.client_sends(call(100, "session/new", cwd="/w"))
        conversation.agent_sends(answer(100, {"sessionId": "s"}))
        conversation.client.pop_messages(), conversation.agent.pop_messages()
        return conversation

    def new_messages(self, talk):
        return sketch(talk.client.pop_messages())

    def test_unknown_session_gets_no_state(self, talk):
        talk.client_sends(call(1, "session/prompt", sessionId="none", prompt=[text("go")]))
        talk.agent_sends(fail(1, -32002))
        [refusal] = talk.client.pop_messages()
        assert refusal["error"]["data"] == {"sessionId": "none"}

    def test_prompt_with_unknown_content_is_refused(self, talk):
        talk.client_sends(call(1, "session/prompt", sessionId="s", prompt=[{"type": "_smell"}]))
        assert self.new_messages(talk) == ["1: -32602"]
        assert talk.agent.pop_messages() == []

    def test_prompt_is_answered_at_the_first_work_and_ends_idle(self, talk):
        talk.client_sends(prompt())
        assert self.new_messages(talk) == ["running"]
        talk.agent_sends(CHUNK)
        assert self.new_messages(talk) == ["1: ['messageId']", "user_message", "agent_message_chunk"]
        talk.agent_sends(answer(1, {"stopReason": "max_tokens"}))
        assert self.new_messages(talk) == ["idle max_tokens"]

    def test_turn_without_updates_is_inserted_and_ends(self, talk):
        talk.client_sends(prompt()).agent_sends(answer(1, {"stopReason": "end_turn"}))
        assert self.new_messages(talk) == ["running", "1: ['messageId']", "user_message", "idle end_turn"]

    def test_refused_prompt_is_an_error_and_not_inserted(self, talk):
        talk.client_sends(prompt()).agent_sends(fail(1, -32000))
        assert self.new_messages(talk) == ["running", "1: -32000", "idle"]

    def test_error_during_a_turn_ends_idle_with_the_error(self, talk):
        talk.client_sends(prompt()).agent_sends(CHUNK, fail(1, -32603, "the model is gone"))
        idle = talk.client.pop_messages()[-1]["params"]["update"]
        assert (idle["stopReason"], idle["error"]["message"]) == ("error", "the model is gone")

    def test_agents_echo_of_the_prompt_becomes_the_message(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(updated(sessionUpdate="user_message_chunk", content=text("go")))
        _, response, echo = talk.client.pop_messages()
        assert echo["params"]["update"]["sessionUpdate"] == "user_message_chunk"
        assert echo["params"]["update"]["messageId"] == response["result"]["messageId"]

    def test_echo_in_several_chunks_is_one_message(self, talk):
        talk.client_sends(prompt(words="go on"))
        talk.agent_sends(*(updated(sessionUpdate="user_message_chunk", content=text(each)) for each in ("go", " on")))
        _, response, first, second = talk.client.pop_messages()
        ids = {each["params"]["update"]["messageId"] for each in (first, second)}
        assert ids == {response["result"]["messageId"]}

    def test_echo_after_the_first_work_is_dropped(self, talk):
        talk.client_sends(prompt(words="go on")).agent_sends(CHUNK)
        assert self.new_messages(talk) == ["running", "1: ['messageId']", "user_message", "agent_message_chunk"]
        talk.agent_sends(*(updated(sessionUpdate="user_message_chunk", content=text(each)) for each in ("go", " on")))
        assert self.new_messages(talk) == []
        talk.agent_sends(updated(sessionUpdate="user_message_chunk", content=text("other")))
        assert self.new_messages(talk) == ["user_message_chunk"]

    def test_session_updates_are_not_signs_of_work(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(updated(sessionUpdate="available_commands_update", availableCommands=[]))
        assert self.new_messages(talk) == ["running", "available_commands_update"]
        talk.agent_sends(updated(sessionUpdate="user_message_chunk", messageId="u", content=text("go")))
        assert self.new_messages(talk) == ["1: ['messageId']", "user_message_chunk"]

    def test_other_user_message_is_not_an_echo(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(updated(sessionUpdate="user_message_chunk", messageId="u", content=text("other")))
        assert self.new_messages(talk) == ["running", "1: ['messageId']", "user_message", "user_message_chunk"]

    def test_state_is_requires_action_until_the_last_answer(self, talk):
        talk.client_sends(prompt()).agent_sends(CHUNK)
        talk.client.pop_messages()
        talk.agent_sends(permission(7), permission(8))
        assert self.new_messages(talk) == [
            "requires_action",
            "session/request_permission",
            "session/request_permission",
        ]
        talk.client_sends(answer(7, {"outcome": {"outcome": "selected", "optionId": "yes"}}))
        assert self.new_messages(talk) == []
        talk.client_sends(answer(8, {"outcome": {"outcome": "_later"}}))
        assert self.new_messages(talk) == ["running"]
        assert [each["result"]["outcome"]["outcome"] for each in talk.agent.pop_messages()[-2:]] == [
            "selected",
            "cancelled",
        ]

    def test_withdrawn_permission_request_returns_to_running(self, talk):
        talk.client_sends(prompt()).agent_sends(CHUNK, permission(7))
        talk.client.pop_messages()
        talk.agent_sends(notification("$/cancel_request", requestId=7))
        assert self.new_messages(talk) == ["$/cancel_request", "running"]

    def test_prompts_during_a_turn_are_held_and_sent_one_by_one(self, talk):
        talk.client_sends(prompt(1), prompt(2), prompt(3))
        assert sketch(talk.agent.pop_messages()) == ["session/prompt"]
        talk.agent_sends(CHUNK, answer(1, {"stopReason": "end_turn"}))
        assert self.new_messages(talk)[-2:] == ["idle end_turn", "running"]
        assert [each["id"] for each in talk.agent.pop_messages()] == [2]
        talk.client_sends(notification("$/cancel_request", requestId=3))
        assert self.new_messages(talk) == ["3: -32800"]
        assert talk.agent.pop_messages() == []

    @pytest.mark.parametrize(
        "end", [notification("session/cancel", sessionId="s"), call(9, "session/close", sessionId="s")]
    )
    def test_held_prompts_end_with_their_session_or_its_work(self, talk, end):
        talk.client_sends(prompt(1), prompt(2), prompt(3), end)
        assert self.new_messages(talk) == ["running", "2: -32800", "3: -32800"]
        talk.agent_sends(answer(1, {"stopReason": "cancelled"}))
        assert sketch(talk.agent.pop_messages()) == ["session/prompt", end["method"]]

    def test_too_many_held_prompts_are_refused(self, talk):
        talk.client_sends(*(prompt(number) for number in range(1, MAX_HELD_PROMPTS + 3)))
        assert self.new_messages(talk) == ["running", f"{MAX_HELD_PROMPTS + 2}: -32603"]

    def test_cancelled_turn_ends_idle_as_cancelled(self, talk):
        talk.client_sends(prompt()).agent_sends(CHUNK)
        talk.client_sends(notification("session/cancel", sessionId="s")).agent_sends(
            answer(1, {"stopReason": "cancelled"})
        )
        assert self.new_messages(talk)[-1] == "idle cancelled"
        assert sketch(talk.agent.pop_messages()) == ["session/prompt", "session/cancel"]

    def test_close_ends_the_turn_and_refuses_uninserted_prompts(self, talk):
        talk.client_sends(prompt(1)).agent_sends(CHUNK)
        talk.client.pop_messages()
        talk.client_sends(prompt(2), call(3, "session/close", sessionId="s"))
        assert self.new_messages(talk) == ["2: -32800"]
        talk.agent_sends(answer(3, {}))
        assert self.new_messages(talk) == ["idle cancelled", "3: []"]
        talk.agent_sends(answer(1, {"stopReason": "cancelled"}))
        assert self.new_messages(talk) == []

    def test_late_answer_does_not_reopen_a_closed_session(self, talk):
        talk.client_sends(prompt(), call(3, "session/close", sessionId="s"))
        talk.agent_sends(permission(), answer(3, {}))
        talk.client_sends(answer(7, {"outcome": {"outcome": "cancelled"}}))
        self.new_messages(talk)
        talk.client_sends(prompt(4)).agent_sends(fail(4, -32002))
        assert self.new_messages(talk) == ["4: -32002"]

    def test_closing_an_unknown_session_succeeds(self, talk):
        talk.client_sends(call(3, "session/close", sessionId="s")).agent_sends(fail(3, -32002))
        assert self.new_messages(talk) == ["3: []"]

    def test_an_unknown_session_is_named(self, talk):
        talk.client_sends(call(3, "session/resume", sessionId="s", cwd="/")).agent_sends(fail(3, -32002, data="gone"))
        assert talk.client.pop_messages()[0]["error"]["data"] == {"sessionId": "s", "data": "gone"}

    def test_resume_with_replay_loads_and_sends_the_state_first(self, talk):
        talk.client_sends(call(3, "session/resume", sessionId="s", cwd="/", replayFrom={"type": "start"}))
        assert sketch(talk.agent.pop_messages()) == ["session/load"]
        talk.agent_sends(CHUNK, answer(3, {}))
        assert self.new_messages(talk) == ["agent_message_chunk", "idle", "3: []"]

    def test_unknown_cursor_is_refused(self, talk):
        talk.client_sends(call(3, "session/resume", sessionId="s", cwd="/", replayFrom={"type": "_end"}))
        assert self.new_messages(talk) == ["3: -32602"]

    def test_single_tool_call_cannot_be_cancelled(self, talk):
        talk.client_sends(call(3, "tool_call/cancel", sessionId="s", toolCallId="t"))
        assert self.new_messages(talk) == ["3: -32602"]
        assert talk.agent.pop_messages() == []

    @pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create"])
    def test_methods_missing_in_a_version_2_client_are_refused(self, talk, method):
        talk.agent_sends(call(9, method, sessionId="s", path="/a", command="ls"))
        assert talk.client.pop_messages() == []
        assert sketch(talk.agent.pop_messages()) == ["9: -32601"]


def test_missing_baseline_methods_of_version_1_are_emulated():
    talk = v2_client_v1_agent()
    talk.client_sends(call(0, "initialize", protocolVersion=2, info={"name": "c", "version": "1"}))
    talk.agent_sends(answer(0, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}))
    talk.client.pop_messages(), talk.agent.pop_messages()
    talk.client_sends(call(1, "session/list"))
    assert talk.client.pop_messages()[0]["result"]["sessions"] == []
    talk.client_sends(call(2, "session/resume", sessionId="s", cwd="/"))
    talk.agent_sends(CHUNK, answer(2, {}))
    assert sketch(talk.client.pop_messages()) == ["idle", "2: []"]
    talk.client_sends(prompt(3)).agent_sends(CHUNK)
    talk.client.pop_messages(), talk.agent.pop_messages()
    talk.client_sends(call(4, "session/close", sessionId="s"))
    assert sketch(talk.client.pop_messages()) == ["idle cancelled", "4: []"]
    assert sketch(talk.agent.pop_messages()) == ["session/cancel"]


class TestV1Client:
    """A version 1 client with a version 2 agent."""

    @pytest.fixture
    def talk(self):
        conversation = v1_client_v2_agent()
        conversation.client_sends(call(0, "initialize", protocolVersion=1))
        info = {"name": "a", "version": "1"}
        conversation.agent_sends(answer(0, {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}))
        conversation.client.pop_messages(), conversation.agent.pop_messages()
        return conversation

    def state(self, state, **more):
        return updated(sessionUpdate="state_update", state=state, **more)

    def new_messages(self, talk):
        return sketch(talk.client.pop_messages())

    ECHO = updated(sessionUpdate="user_message", messageId="u", content=[text("go")])

    def test_prompt_is_answered_by_idle_after_running(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(self.state("idle"), answer(1, {"messageId": "u"}), self.ECHO, self.state("running"), CHUNK)
        assert self.new_messages(talk) == ["agent_message_chunk"]
        talk.agent_sends(self.state("requires_action"), self.state("running"))
        assert self.new_messages(talk) == []
        talk.agent_sends(self.state("idle", stopReason="refusal"))
        response = talk.client.pop_messages()[0]
        assert (response["id"], response["result"]["stopReason"]) == (1, "refusal")

    def test_repeated_idle_ends_nothing(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(answer(1, {"messageId": "u"}), self.state("idle", stopReason="end_turn"))
        assert self.new_messages(talk) == ["session_info_update"]
        talk.agent_sends(self.state("running"), self.state("idle", stopReason="end_turn"))
        assert self.new_messages(talk) == ["1: ['_meta', 'stopReason']"]

    def test_response_after_idle_ends_the_prompt(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(self.state("running"), self.ECHO, self.state("idle", stopReason="end_turn"))
        assert self.new_messages(talk) == []
        talk.agent_sends(answer(1, {"messageId": "u"}))
        assert self.new_messages(talk) == ["1: ['_meta', 'stopReason']"]

    def test_echo_is_recognised_by_content_before_the_response(self, talk):
        talk.client_sends(prompt()).agent_sends(self.ECHO)
        assert self.new_messages(talk) == []
        other = updated(sessionUpdate="user_message", messageId="v", content=[text("typed elsewhere")])
        talk.agent_sends(other)
        assert self.new_messages(talk) == ["user_message_chunk"]

    def test_echo_in_chunks_is_dropped(self, talk):
        talk.client_sends(prompt(words="go on"))
        for each in ("go", " on"):
            talk.agent_sends(updated(sessionUpdate="user_message_chunk", messageId="u", content=text(each)))
        assert self.new_messages(talk) == []

    def test_error_stop_reason_becomes_the_prompts_error(self, talk):
        talk.client_sends(prompt())
        failure = {"code": -32603, "message": "the model is gone"}
        talk.agent_sends(answer(1, {"messageId": "u"}), self.state("running"))
        talk.agent_sends(self.state("idle", stopReason="error", error=failure))
        assert talk.client.pop_messages()[0]["error"] == failure

    def test_unknown_stop_reason_becomes_end_turn(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(answer(1, {"messageId": "u"}), self.state("running"), self.state("idle", stopReason="_bored"))
        result = talk.client.pop_messages()[0]["result"]
        assert result["stopReason"] == "end_turn"
        assert result["_meta"]["dragoman/v2"]["stopReason"] == "_bored"

    def test_unprompted_work_is_shown_with_carried_states(self, talk):
        talk.agent_sends(self.state("running"), CHUNK, self.state("idle", stopReason="end_turn"))
        running, chunk, idle = talk.client.pop_messages()
        assert sketch([running, chunk, idle]) == ["session_info_update", "agent_message_chunk", "session_info_update"]
        assert idle["params"]["update"]["_meta"]["dragoman/v2"]["update"]["state"] == "idle"

    def test_cancel_withdraws_uninserted_prompts(self, talk):
        talk.client_sends(prompt(1)).agent_sends(answer(1, {"messageId": "u"}), self.state("running"))
        talk.client_sends(prompt(2))
        talk.agent.pop_messages()
        talk.client_sends(notification("session/cancel", sessionId="s"))
        assert sketch(talk.agent.pop_messages()) == ["session/cancel", "$/cancel_request"]
        talk.agent_sends(fail(2, -32800), self.state("idle", stopReason="cancelled"))
        assert [each["result"]["stopReason"] for each in talk.client.pop_messages()] == ["cancelled", "cancelled"]

    def test_withdrawing_an_inserted_prompt_cancels_the_session(self, talk):
        talk.client_sends(prompt(1))
        talk.agent.pop_messages()
        talk.client_sends(notification("$/cancel_request", requestId=1))
        assert sketch(talk.agent.pop_messages()) == ["$/cancel_request"]
        talk.agent_sends(answer(1, {"messageId": "u"}))
        talk.client_sends(notification("$/cancel_request", requestId=1))
        assert sketch(talk.agent.pop_messages()) == ["session/cancel"]

    def test_load_replays_from_the_start_with_user_messages(self, talk):
        talk.client_sends(call(3, "session/load", sessionId="s", cwd="/", mcpServers=[]))
        assert talk.agent.pop_messages()[0]["params"]["replayFrom"] == {"type": "start"}
        talk.agent_sends(self.ECHO, self.state("idle"), answer(3, {}))
        assert self.new_messages(talk) == ["user_message_chunk", "3: []"]

    def test_request_with_a_null_id_is_refused(self, talk):
        talk.client_sends(call(None, "session/list"))
        assert self.new_messages(talk) == ["None: -32600"]


class TestMessagesForV1:
    """Complete version 2 messages for a version 1 client."""

    talk = TestV1Client.talk

    def message(self, *words, message_id="a"):
        return updated(sessionUpdate="agent_message", messageId=message_id, content=[text(each) for each in words])

    def chunk(self, words):
        return updated(sessionUpdate="agent_message_chunk", messageId="a", content=text(words))

    def new_messages(self, talk):
        return [
            (update["messageId"], update["content"]["text"], (update.get("_meta") or {}).get("dragoman/void", False))
            for update in (each["params"]["update"] for each in talk.client.pop_messages())
        ]

    def test_only_the_rest_of_a_message_is_sent(self, talk):
        talk.agent_sends(
            self.chunk("Hel"), self.chunk("lo"), self.message("Hello", " world"), self.message("Hello world!")
        )
        assert self.new_messages(talk) == [
            ("a", "Hel", False),
            ("a", "lo", False),
            ("a", " world", False),
            ("a", "!", False),
        ]

    def test_replaced_message_is_void_and_sent_again(self, talk):
        talk.agent_sends(self.chunk("Hello"), self.message("Goodbye"), self.chunk("!"))
        assert self.new_messages(talk) == [
            ("a", "Hello", False),
            ("a", "", True),
            ("a#1", "Goodbye", False),
            ("a#1", "!", False),
        ]

    def test_cleared_message_is_void(self, talk):
        talk.agent_sends(self.chunk("Hello"), updated(sessionUpdate="agent_message", messageId="a", content=None))
        assert self.new_messages(talk) == [("a", "Hello", False), ("a", "", True)]
