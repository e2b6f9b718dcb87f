"""Turns of version 1 are told as states of version 2, and states are answers to prompts of version 1."""

import pytest

from dragoman.protocol.translate.turn import MAX_HELD_PROMPTS
from tests.protocol.translate.conversation import (
    answer,
    call,
    fail,
    tell,
    text,
    updated,
    v1_client_v2_agent,
    v2_client_v1_agent,
)

OPTIONS = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
CHUNK = updated(sessionUpdate="agent_message_chunk", messageId="a", content=text("Hi"))


def sketch(messages):
    """Each message in a word or two."""
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
    """A client of version 2 on an agent of version 1."""

    @pytest.fixture
    def talk(self):
        conversation = v2_client_v1_agent()
        info = {"name": "c", "version": "1"}
        conversation.client_sends(call(0, "initialize", protocolVersion=2, info=info))
        capabilities = {"sessionCapabilities": {"close": {}, "resume": {}}, "loadSession": True}
        conversation.agent_sends(answer(0, {"protocolVersion": 1, "agentCapabilities": capabilities}))
        conversation.client_sends(call(100, "session/new", cwd="/w"))
        conversation.agent_sends(answer(100, {"sessionId": "s"}))
        conversation.client.take(), conversation.agent.take()
        return conversation

    def told(self, talk):
        return sketch(talk.client.take())

    def test_of_a_session_that_was_never_opened_no_state_is_told(self, talk):
        talk.client_sends(call(1, "session/prompt", sessionId="none", prompt=[text("go")]))
        talk.agent_sends(fail(1, -32002))
        [refusal] = talk.client.take()
        assert refusal["error"]["data"] == {"sessionId": "none"}

    def test_a_prompt_with_content_that_version_1_does_not_have_is_refused(self, talk):
        talk.client_sends(call(1, "session/prompt", sessionId="s", prompt=[{"type": "_smell"}]))
        assert self.told(talk) == ["1: -32602"]
        assert talk.agent.take() == []

    def test_a_prompt_is_answered_when_the_agent_works_and_ends_in_idle(self, talk):
        talk.client_sends(prompt())
        assert self.told(talk) == ["running"]
        talk.agent_sends(CHUNK)
        assert self.told(talk) == ["1: ['messageId']", "user_message", "agent_message_chunk"]
        talk.agent_sends(answer(1, {"stopReason": "max_tokens"}))
        assert self.told(talk) == ["idle max_tokens"]

    def test_a_turn_without_updates_is_inserted_and_over_at_once(self, talk):
        talk.client_sends(prompt()).agent_sends(answer(1, {"stopReason": "end_turn"}))
        assert self.told(talk) == ["running", "1: ['messageId']", "user_message", "idle end_turn"]

    def test_a_refused_prompt_is_an_error_and_was_never_inserted(self, talk):
        talk.client_sends(prompt()).agent_sends(fail(1, -32000))
        assert self.told(talk) == ["running", "1: -32000", "idle"]

    def test_an_error_in_the_middle_ends_in_idle_with_it(self, talk):
        talk.client_sends(prompt()).agent_sends(CHUNK, fail(1, -32603, "the model is gone"))
        idle = talk.client.take()[-1]["params"]["update"]
        assert (idle["stopReason"], idle["error"]["message"]) == ("error", "the model is gone")

    def test_the_agents_own_echo_of_the_prompt_is_the_message(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(updated(sessionUpdate="user_message_chunk", content=text("go")))
        _, response, echo = talk.client.take()
        assert echo["params"]["update"]["sessionUpdate"] == "user_message_chunk"
        assert echo["params"]["update"]["messageId"] == response["result"]["messageId"]

    def test_updates_that_come_at_any_time_are_no_sign_of_work(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(updated(sessionUpdate="available_commands_update", availableCommands=[]))
        assert self.told(talk) == ["running", "available_commands_update"]
        talk.agent_sends(updated(sessionUpdate="user_message_chunk", messageId="u", content=text("go")))
        assert self.told(talk) == ["1: ['messageId']", "user_message_chunk"]

    def test_a_message_of_someone_else_is_no_echo(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(updated(sessionUpdate="user_message_chunk", messageId="u", content=text("other")))
        assert self.told(talk) == ["running", "1: ['messageId']", "user_message", "user_message_chunk"]

    def test_permission_is_required_action_until_the_last_is_answered(self, talk):
        talk.client_sends(prompt()).agent_sends(CHUNK)
        talk.client.take()
        talk.agent_sends(permission(7), permission(8))
        assert self.told(talk) == ["requires_action", "session/request_permission", "session/request_permission"]
        talk.client_sends(answer(7, {"outcome": {"outcome": "selected", "optionId": "yes"}}))
        assert self.told(talk) == []
        talk.client_sends(answer(8, {"outcome": {"outcome": "_later"}}))
        assert self.told(talk) == ["running"]
        assert [each["result"]["outcome"]["outcome"] for each in talk.agent.take()[-2:]] == ["selected", "cancelled"]

    def test_withdrawn_permission_lets_the_turn_run_on(self, talk):
        talk.client_sends(prompt()).agent_sends(CHUNK, permission(7))
        talk.client.take()
        talk.agent_sends(tell("$/cancel_request", requestId=7))
        assert self.told(talk) == ["$/cancel_request", "running"]

    def test_prompts_during_a_turn_are_held_and_sent_one_by_one(self, talk):
        talk.client_sends(prompt(1), prompt(2), prompt(3))
        assert sketch(talk.agent.take()) == ["session/prompt"]
        talk.agent_sends(CHUNK, answer(1, {"stopReason": "end_turn"}))
        assert self.told(talk)[-2:] == ["idle end_turn", "running"]
        assert [each["id"] for each in talk.agent.take()] == [2]
        talk.client_sends(tell("$/cancel_request", requestId=3))
        assert self.told(talk) == ["3: -32800"]
        assert talk.agent.take() == []

    def test_too_many_held_prompts_are_refused(self, talk):
        talk.client_sends(*(prompt(number) for number in range(1, MAX_HELD_PROMPTS + 3)))
        assert self.told(talk) == ["running", f"{MAX_HELD_PROMPTS + 2}: -32603"]

    def test_cancelling_ends_in_idle_cancelled(self, talk):
        talk.client_sends(prompt()).agent_sends(CHUNK)
        talk.client_sends(tell("session/cancel", sessionId="s")).agent_sends(answer(1, {"stopReason": "cancelled"}))
        assert self.told(talk)[-1] == "idle cancelled"
        assert sketch(talk.agent.take()) == ["session/prompt", "session/cancel"]

    def test_closing_ends_the_turn_and_what_was_not_inserted_before_it_answers(self, talk):
        talk.client_sends(prompt(1)).agent_sends(CHUNK)
        talk.client_sends(prompt(2), call(3, "session/close", sessionId="s"))
        talk.client.take()
        talk.agent_sends(answer(3, {}))
        assert self.told(talk) == ["2: -32800", "idle cancelled", "3: []"]
        talk.agent_sends(answer(1, {"stopReason": "cancelled"}))
        assert self.told(talk) == []

    def test_a_question_that_is_answered_after_a_close_does_not_open_the_session_again(self, talk):
        talk.client_sends(prompt(), call(3, "session/close", sessionId="s"))
        talk.agent_sends(permission(), answer(3, {}))
        talk.client_sends(answer(7, {"outcome": {"outcome": "cancelled"}}))
        self.told(talk)
        talk.client_sends(prompt(4)).agent_sends(fail(4, -32002))
        assert self.told(talk) == ["4: -32002"]

    def test_closing_a_session_that_is_unknown_succeeds(self, talk):
        talk.client_sends(call(3, "session/close", sessionId="s")).agent_sends(fail(3, -32002))
        assert self.told(talk) == ["3: []"]

    def test_an_unknown_session_is_named(self, talk):
        talk.client_sends(call(3, "session/resume", sessionId="s", cwd="/")).agent_sends(fail(3, -32002, data="gone"))
        assert talk.client.take()[0]["error"]["data"] == {"sessionId": "s", "data": "gone"}

    def test_resuming_with_a_replay_loads_and_tells_the_state_before_the_answer(self, talk):
        talk.client_sends(call(3, "session/resume", sessionId="s", cwd="/", replayFrom={"type": "start"}))
        assert sketch(talk.agent.take()) == ["session/load"]
        talk.agent_sends(CHUNK, answer(3, {}))
        assert self.told(talk) == ["agent_message_chunk", "idle", "3: []"]

    def test_a_cursor_that_is_not_known_is_refused(self, talk):
        talk.client_sends(call(3, "session/resume", sessionId="s", cwd="/", replayFrom={"type": "_end"}))
        assert self.told(talk) == ["3: -32602"]

    def test_a_tool_call_cannot_be_cancelled_alone(self, talk):
        talk.client_sends(call(3, "tool_call/cancel", sessionId="s", toolCallId="t"))
        assert self.told(talk) == ["3: -32602"]
        assert talk.agent.take() == []

    @pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create"])
    def test_methods_that_a_version_2_client_has_not_are_refused_for_it(self, talk, method):
        talk.agent_sends(call(9, method, sessionId="s", path="/a", command="ls"))
        assert talk.client.take() == []
        assert sketch(talk.agent.take()) == ["9: -32601"]


def test_an_agent_of_version_1_without_the_baseline_is_made_up_for():
    talk = v2_client_v1_agent()
    talk.client_sends(call(0, "initialize", protocolVersion=2, info={"name": "c", "version": "1"}))
    talk.agent_sends(answer(0, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}))
    talk.client.take(), talk.agent.take()
    talk.client_sends(call(1, "session/list"))
    assert talk.client.take()[0]["result"]["sessions"] == []
    talk.client_sends(call(2, "session/resume", sessionId="s", cwd="/"))
    talk.agent_sends(CHUNK, answer(2, {}))
    assert sketch(talk.client.take()) == ["idle", "2: []"]
    talk.client_sends(prompt(3)).agent_sends(CHUNK)
    talk.client.take(), talk.agent.take()
    talk.client_sends(call(4, "session/close", sessionId="s"))
    assert sketch(talk.client.take()) == ["idle cancelled", "4: []"]
    assert sketch(talk.agent.take()) == ["session/cancel"]


class TestV1Client:
    """A client of version 1 on an agent of version 2."""

    @pytest.fixture
    def talk(self):
        conversation = v1_client_v2_agent()
        conversation.client_sends(call(0, "initialize", protocolVersion=1))
        info = {"name": "a", "version": "1"}
        conversation.agent_sends(answer(0, {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}))
        conversation.client.take(), conversation.agent.take()
        return conversation

    def state(self, state, **more):
        return updated(sessionUpdate="state_update", state=state, **more)

    def told(self, talk):
        return sketch(talk.client.take())

    ECHO = updated(sessionUpdate="user_message", messageId="u", content=[text("go")])

    def test_a_prompt_is_answered_by_the_idle_that_follows_on_running(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(self.state("idle"), answer(1, {"messageId": "u"}), self.ECHO, self.state("running"), CHUNK)
        assert self.told(talk) == ["agent_message_chunk"]
        talk.agent_sends(self.state("requires_action"), self.state("running"))
        assert self.told(talk) == []
        talk.agent_sends(self.state("idle", stopReason="refusal"))
        response = talk.client.take()[0]
        assert (response["id"], response["result"]["stopReason"]) == (1, "refusal")

    def test_an_idle_that_repeats_the_last_one_ends_nothing(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(answer(1, {"messageId": "u"}), self.state("idle", stopReason="end_turn"))
        assert self.told(talk) == ["session_info_update"]
        talk.agent_sends(self.state("running"), self.state("idle", stopReason="end_turn"))
        assert self.told(talk) == ["1: ['_meta', 'stopReason']"]

    def test_an_answer_after_the_idle_is_the_end_at_once(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(self.state("running"), self.ECHO, self.state("idle", stopReason="end_turn"))
        assert self.told(talk) == []
        talk.agent_sends(answer(1, {"messageId": "u"}))
        assert self.told(talk) == ["1: ['_meta', 'stopReason']"]

    def test_the_echo_is_known_by_its_content_before_the_answer_names_it(self, talk):
        talk.client_sends(prompt()).agent_sends(self.ECHO)
        assert self.told(talk) == []
        other = updated(sessionUpdate="user_message", messageId="v", content=[text("typed elsewhere")])
        talk.agent_sends(other)
        assert self.told(talk) == ["user_message_chunk"]

    def test_an_error_as_the_reason_is_the_error_of_the_prompt(self, talk):
        talk.client_sends(prompt())
        failure = {"code": -32603, "message": "the model is gone"}
        talk.agent_sends(answer(1, {"messageId": "u"}), self.state("running"))
        talk.agent_sends(self.state("idle", stopReason="error", error=failure))
        assert talk.client.take()[0]["error"] == failure

    def test_a_reason_that_is_not_known_is_the_end_of_the_turn_and_is_carried(self, talk):
        talk.client_sends(prompt())
        talk.agent_sends(answer(1, {"messageId": "u"}), self.state("running"), self.state("idle", stopReason="_bored"))
        result = talk.client.take()[0]["result"]
        assert result["stopReason"] == "end_turn"
        assert result["_meta"]["dragoman/v2"]["stopReason"] == "_bored"

    def test_work_that_the_agent_begins_by_itself_is_shown_and_its_states_are_carried(self, talk):
        talk.agent_sends(self.state("running"), CHUNK, self.state("idle", stopReason="end_turn"))
        running, chunk, idle = talk.client.take()
        assert sketch([running, chunk, idle]) == ["session_info_update", "agent_message_chunk", "session_info_update"]
        assert idle["params"]["update"]["_meta"]["dragoman/v2"]["update"]["state"] == "idle"

    def test_cancelling_withdraws_the_prompts_that_are_not_inserted(self, talk):
        talk.client_sends(prompt(1)).agent_sends(answer(1, {"messageId": "u"}), self.state("running"))
        talk.client_sends(prompt(2))
        talk.agent.take()
        talk.client_sends(tell("session/cancel", sessionId="s"))
        assert sketch(talk.agent.take()) == ["session/cancel", "$/cancel_request"]
        talk.agent_sends(fail(2, -32800), self.state("idle", stopReason="cancelled"))
        assert [each["result"]["stopReason"] for each in talk.client.take()] == ["cancelled", "cancelled"]

    def test_withdrawing_a_prompt_that_is_inserted_cancels_the_session(self, talk):
        talk.client_sends(prompt(1))
        talk.agent.take()
        talk.client_sends(tell("$/cancel_request", requestId=1))
        assert sketch(talk.agent.take()) == ["$/cancel_request"]
        talk.agent_sends(answer(1, {"messageId": "u"}))
        talk.client_sends(tell("$/cancel_request", requestId=1))
        assert sketch(talk.agent.take()) == ["session/cancel"]

    def test_loading_replays_from_the_start_with_the_users_messages(self, talk):
        talk.client_sends(call(3, "session/load", sessionId="s", cwd="/", mcpServers=[]))
        assert talk.agent.take()[0]["params"]["replayFrom"] == {"type": "start"}
        talk.agent_sends(self.ECHO, self.state("idle"), answer(3, {}))
        assert self.told(talk) == ["user_message_chunk", "3: []"]

    def test_a_request_without_an_id_of_its_own_is_refused(self, talk):
        talk.client_sends(call(None, "session/list"))
        assert self.told(talk) == ["None: -32600"]


class TestMessagesForV1:
    """Whole messages of version 2 for a client of version 1."""

    talk = TestV1Client.talk

    def message(self, *words, message_id="a"):
        return updated(sessionUpdate="agent_message", messageId=message_id, content=[text(each) for each in words])

    def chunk(self, words):
        return updated(sessionUpdate="agent_message_chunk", messageId="a", content=text(words))

    def told(self, talk):
        return [
            (update["messageId"], update["content"]["text"], (update.get("_meta") or {}).get("dragoman/void", False))
            for update in (each["params"]["update"] for each in talk.client.take())
        ]

    def test_only_the_rest_of_a_message_is_told(self, talk):
        talk.agent_sends(
            self.chunk("Hel"), self.chunk("lo"), self.message("Hello", " world"), self.message("Hello world!")
        )
        assert self.told(talk) == [("a", "Hel", False), ("a", "lo", False), ("a", " world", False), ("a", "!", False)]

    def test_a_message_that_was_replaced_is_void_and_told_anew(self, talk):
        talk.agent_sends(self.chunk("Hello"), self.message("Goodbye"), self.chunk("!"))
        assert self.told(talk) == [
            ("a", "Hello", False),
            ("a", "", True),
            ("a#1", "Goodbye", False),
            ("a#1", "!", False),
        ]

    def test_a_message_that_was_cleared_is_void(self, talk):
        talk.agent_sends(self.chunk("Hello"), updated(sessionUpdate="agent_message", messageId="a", content=None))
        assert self.told(talk) == [("a", "Hello", False), ("a", "", True)]
