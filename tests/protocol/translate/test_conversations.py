"""Generated conversations of several turns round-trip through the other version, with the exceptions of the table.

A conversation is a list of turns of one session: a prompt, updates of any kind, perhaps a question to the user, and an
end: a response, an error or a cancellation. Every message sent to a side is checked against the schema of its version
(see `conversation`).
"""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.protocol.translate.conversation import answer, call, fail, notification, text, updated
from tests.protocol.translate.test_updates import (
    V1_UPDATES,
    V2_UPDATES,
    V1Folding,
    V2Folding,
    lists_of,
    opened_through_v1,
    opened_through_v2,
)

OPTIONS = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal")

COMMANDS = {"sessionUpdate": "available_commands_update", "availableCommands": []}
"""An update that does not show work on the prompt."""
NAMED_CALL = {"sessionUpdate": "tool_call_update", "toolCallId": "words", "name": "search"}
"""A tool call that is first mentioned without a title."""
SILENT_MESSAGE = {"sessionUpdate": "user_message", "messageId": "words"}
"""A message without content, which version 1 cannot express."""


def turns_of(updates):
    ends = st.one_of(st.sampled_from(STOP_REASONS), st.just("cancelled"), st.just("error"))
    turn = st.tuples(lists_of(updates), st.booleans(), ends)
    return st.lists(turn, min_size=1, max_size=4)


def is_update(message):
    return message.get("method") == "session/update"


NO_WORK = {"available_commands_update", "config_option_update", "session_info_update", "notice"}
"""Version 2 updates that do not show work on the prompt."""


def is_state(message):
    return is_update(message) and message["params"]["update"]["sessionUpdate"] == "state_update"


def updates_in(messages):
    return [each["params"]["update"] for each in messages if is_update(each) and not is_state(each)]


@settings(max_examples=60, deadline=None)
@given(turns_of([each for each in V1_UPDATES if each["sessionUpdate"] != "user_message_chunk"]))
@example([([COMMANDS], False, "error")])
@example([([NAMED_CALL], False, "end_turn")])
@example([([COMMANDS], False, "cancelled")])
def test_version_1_turns_round_trip(turns):
    """Turns of version 1 through version 2 and back."""
    talk = opened_through_v2()
    folding, expected = V1Folding(), V1Folding()
    for number, (updates, asks, end) in enumerate(turns, 10):
        talk.agent.pop_messages()
        talk.client_sends(call(number, "session/prompt", sessionId="s", prompt=[text(f"go {number}")]))
        [sent] = talk.agent.pop_messages()
        assert sent["params"]["prompt"] == [text(f"go {number}")]
        talk.agent_sends(*(updated(**each) for each in updates))
        if asks:
            asked = {"sessionId": "s", "toolCall": {"toolCallId": "q"}, "options": OPTIONS}
            talk.agent_sends(call(f"ask-{number}", "session/request_permission", **asked))
            chosen = {"outcome": {"outcome": "selected", "optionId": "yes"}}
            talk.client_sends(answer(f"ask-{number}", chosen))
            assert talk.agent.pop_messages()[-1]["result"] == chosen
        if end == "cancelled":
            talk.client_sends(notification("session/cancel", sessionId="s"))
            cancelled, *withdrawn = [each for each in talk.agent.pop_messages() if each["method"] != "session/prompt"]
            assert cancelled["method"] == "session/cancel"
            # A prompt without a sign of work is not inserted in version 2, so it is withdrawn as well.
            assert withdrawn in ([], [notification("$/cancel_request", requestId=number)])
        ended = fail(number, -32603, "it broke") if end == "error" else answer(number, {"stopReason": end})
        talk.agent_sends(ended)
        received = talk.client.pop_messages()
        assert folding.fold(updates_in(received)) == expected.fold(updates)
        assert [each["id"] for each in received if "method" in each and "id" in each] == [f"ask-{number}"] * asks
        [last] = [each for each in received if "method" not in each]
        if end == "error":
            assert (last["error"]["code"], last["error"]["message"]) == (-32603, "it broke")
        else:
            assert last["result"]["stopReason"] == end


@settings(max_examples=60, deadline=None)
@given(turns_of([each for each in V2_UPDATES if each["sessionUpdate"] not in ("state_update", "user_message_chunk")]))
@example([([SILENT_MESSAGE], False, "error")])
@example([([SILENT_MESSAGE], False, "cancelled")])
def test_version_2_turns_round_trip(turns):
    """Turns of version 2 through version 1 and back."""
    talk = opened_through_v1()
    folding, expected = V2Folding(), V2Folding()
    for number, (updates, asks, end) in enumerate(turns, 10):
        talk.client_sends(call(number, "session/prompt", sessionId="s", prompt=[text(f"go {number}")]))
        [sent] = [each for each in talk.agent.pop_messages() if each.get("method") == "session/prompt"]
        echo = {"sessionUpdate": "user_message", "messageId": f"u{number}", "content": sent["params"]["prompt"]}
        talk.agent_sends(answer(number, {"messageId": f"u{number}"}), updated(**echo), state("running"))
        talk.agent_sends(*(updated(**each) for each in updates))
        if asks:
            subject = {"type": "command", "command": "ls", "cwd": "/"}
            asked = {"sessionId": "s", "title": "Run?", "subject": subject, "options": OPTIONS}
            talk.agent_sends(state("requires_action"), call(f"ask-{number}", "session/request_permission", **asked))
            chosen = {"outcome": {"outcome": "selected", "optionId": "yes"}}
            talk.client_sends(answer(f"ask-{number}", chosen))
            assert talk.agent.pop_messages()[-1]["result"] == chosen
            talk.agent_sends(state("running"))
        if end == "cancelled":
            talk.client_sends(notification("session/cancel", sessionId="s"))
            assert talk.agent.pop_messages()[-1]["method"] == "session/cancel"
        failure = {"error": {"code": -32603, "message": "it broke"}} if end == "error" else {}
        talk.agent_sends(state("idle", stopReason=end, **failure))
        received = talk.client.pop_messages()
        states = [each["params"]["update"] for each in received if is_state(each)]
        assert [each["state"] for each in states] == ["running", *["requires_action", "running"] * asks, "idle"]
        if refusals := [each["error"] for each in received if "error" in each]:
            # An error before a sign of work in version 1 is the error of the prompt, as the table says.
            assert refusals == [failure["error"]]
            assert {each["sessionUpdate"] for each in updates_in(received)} <= NO_WORK
            assert folding.fold(updates_in(received)) == expected.fold(updates)
            continue
        assert (states[-1]["stopReason"], states[-1].get("error")) == (end, failure.get("error"))
        [inserted] = [each["result"]["messageId"] for each in received if "method" not in each]
        echoes = [each for each in updates_in(received) if is_message(each, inserted)]
        assert [each["content"] for each in echoes] == [[text(f"go {number}")]]
        rest = [each for each in updates_in(received) if each not in echoes]
        assert folding.fold(rest) == expected.fold(updates)


def is_message(update, message_id):
    return update["sessionUpdate"] == "user_message" and update["messageId"] == message_id


def state(name, **more):
    return updated(sessionUpdate="state_update", state=name, **more)
