"""Commands of a version 1 agent are terminals of version 2: their output grows by chunks, and each ends once."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.fence import fenced, unfenced
from tests.protocol.translate.conversation import text, updated
from tests.protocol.translate.test_setup import v2_client

BEGIN = {"command": "make", "cwd": "/w", "capabilities": {"cancel": {}}}
TERMINAL = {"type": "terminal", "terminalId": "x"}


def shown(output, **fields):
    item = {"type": "content", "content": text(output), "_meta": {"dragoman/v2": {"terminal": fields}}}
    return {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [item]}


def told(talk, **update):
    talk.agent_sends(updated(**update))
    return [each["params"]["update"] for each in talk.client.take()]


def chunk(output):
    data = base64.b64encode(output).decode()
    return {"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": data}


def changed(**fields):
    return {"sessionUpdate": "terminal_update", "terminalId": "x", **fields}


def begun():
    talk = v2_client()
    told(talk, sessionUpdate="tool_call", toolCallId="t", title="Run make")
    assert told(talk, **shown("", terminalId="x", **BEGIN)) == [
        changed(**BEGIN),
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [TERMINAL]},
    ]
    return talk


def test_output_that_grows_is_told_by_chunks_and_other_output_replaces_it():
    talk = begun()
    [first] = told(talk, **shown(fenced("one"), terminalId="x"))
    assert first == changed(output={"data": base64.b64encode(b"one").decode()})
    assert told(talk, **shown(fenced("one\ntwo\n"), terminalId="x")) == [chunk(b"\ntwo")]
    assert told(talk, **shown(fenced("one\ntwo\n"), terminalId="x")) == []
    [replaced] = told(talk, **shown(fenced("[…]\ntwo"), terminalId="x"))
    assert base64.b64decode(replaced["output"]["data"]) == "[…]\ntwo".encode()


def test_a_terminal_ends_with_its_exit_and_is_not_told_again():
    talk = begun()
    end = {"exitStatus": {"exitCode": 2}, "capabilities": None}
    assert told(talk, **shown("[no output]", terminalId="x", **end)) == [changed(**end)]
    last = told(talk, **shown("[no output]", terminalId="x", **end), status="completed")
    assert [(each["sessionUpdate"], each["status"]) for each in last] == [("tool_call_update", "completed")]


def test_a_terminal_of_an_agent_that_died_ends_with_its_tool_call():
    talk = begun()
    ended = told(talk, sessionUpdate="tool_call_update", toolCallId="t", status="failed", content=[])
    assert ended[0] == changed(exitStatus={}, capabilities=None)
    assert ended[1]["status"] == "failed"


@given(st.text(alphabet="`a\n"))
def test_a_text_in_a_fence_comes_back_without_the_newline_at_its_end(given_text):
    assert unfenced(fenced(given_text)) == given_text.removesuffix("\n")
