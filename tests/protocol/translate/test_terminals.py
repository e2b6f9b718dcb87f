"""Commands of a version 1 agent become version 2 terminals. Their output grows in chunks, and each ends once."""

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


def send_update(talk, **update):
    talk.agent_sends(updated(**update))
    return [each["params"]["update"] for each in talk.client.pop_messages()]


def chunk(output):
    data = base64.b64encode(output).decode()
    return {"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": data}


def changed(**fields):
    return {"sessionUpdate": "terminal_update", "terminalId": "x", **fields}


def begun():
    talk = v2_client()
    send_update(talk, sessionUpdate="tool_call", toolCallId="t", title="Run make")
    assert send_update(talk, **shown("", terminalId="x", **BEGIN)) == [
        changed(**BEGIN),
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [TERMINAL]},
    ]
    return talk


def test_growing_output_is_sent_in_chunks_and_other_output_replaces_it():
    talk = begun()
    [first] = send_update(talk, **shown(fenced("one"), terminalId="x"))
    assert first == changed(output={"data": base64.b64encode(b"one").decode()})
    assert send_update(talk, **shown(fenced("one\ntwo\n"), terminalId="x")) == [chunk(b"\ntwo")]
    assert send_update(talk, **shown(fenced("one\ntwo\n"), terminalId="x")) == []
    [replaced] = send_update(talk, **shown(fenced("[…]\ntwo"), terminalId="x"))
    assert base64.b64decode(replaced["output"]["data"]) == "[…]\ntwo".encode()


def test_terminal_ends_once_with_its_exit_status():
    talk = begun()
    end = {"exitStatus": {"exitCode": 2}, "capabilities": None}
    assert send_update(talk, **shown("[no output]", terminalId="x", **end)) == [changed(**end)]
    last = send_update(talk, **shown("[no output]", terminalId="x", **end), status="completed")
    assert [(each["sessionUpdate"], each["status"]) for each in last] == [("tool_call_update", "completed")]


def test_terminal_without_exit_status_ends_with_its_tool_call():
    talk = begun()
    ended = send_update(talk, sessionUpdate="tool_call_update", toolCallId="t", status="failed", content=[])
    assert ended[0] == changed(exitStatus={}, capabilities=None)
    assert ended[1]["status"] == "failed"


@given(st.text(alphabet="`a\n"))
def test_fenced_text_loses_only_its_last_newline(given_text):
    assert unfenced(fenced(given_text)) == given_text.removesuffix("\n")
