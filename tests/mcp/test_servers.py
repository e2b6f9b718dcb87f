"""The scripted servers behave as configured, checked over plain pipes. Other tests rely on this."""

import json
import os
import signal
import socket
import subprocess

import pytest

from tests.mcp.servers.commands import scripted
from tests.mcp.servers.raw import PATIENCE_S, VERSION, RawClient
from tests.proc.processes import pids_in, wait_until_gone
from tests.waiting import wait_until

A_MOMENT_S = 0.3
"""How long to wait for an event that must not happen. A fault may go unseen, but a healthy server never fails."""


def starting(**options):
    return RawClient(scripted(**options))


@pytest.fixture
def pid_file(tmp_path):
    """A file for pids. Processes recorded there are killed at the end."""
    file = tmp_path / "pids"
    yield file
    pids = [int(line) for line in file.read_text().split()]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_until_gone(pids)


def text_of(result):
    [content] = result["content"]
    return content["text"]


def is_silent(client, *unanswered):
    """Return whether these requests stay unanswered while others are answered, until the end."""
    for _ in range(3):
        client.request("ping")
    client.hang_up()
    while line := client.line():
        client.received.append(json.loads(line))
    return not any(message["id"] in unanswered for message in client.received if "method" not in message)


def test_server_without_options_has_one_tool():
    with starting() as client:
        introduction = client.initialize()
        assert introduction["protocolVersion"] == VERSION
        assert introduction["serverInfo"] == {"name": "scripted", "version": "1"}
        assert client.tools() == ["echo"]
        assert client.call(text="hello") == {"content": [{"type": "text", "text": "hello"}], "isError": False}
        client.hang_up()
        assert client.ended() == (0, "")


def test_server_introduces_itself():
    with starting(name="weather", version="7", instructions="Ask me.", protocol_version="2024-11-05") as client:
        introduction = client.initialize()
        assert introduction["serverInfo"] == {"name": "weather", "version": "7"}
        assert (introduction["instructions"], introduction["protocolVersion"]) == ("Ask me.", "2024-11-05")


def test_a_misspelt_option_is_refused():
    with starting(hang_att="list") as client:
        assert client.ended() == (1, "no such option: hang_att\n")


def test_configured_tools_are_listed():
    tool = {
        "name": "forecast",
        "description": "Tomorrow's weather",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }
    with starting(tools=[{**tool, "does": {"text": "rain"}}, {"name": "bare"}]) as client:
        listed = client.request("tools/list")["result"]["tools"]
        assert listed == [tool, {"name": "bare", "inputSchema": {"type": "object"}}]
        assert text_of(client.call("forecast", city="Bern")) == "rain"
        assert json.loads(text_of(client.call("bare", city="Bern"))) == {"city": "Bern"}
        assert client.request("tools/call", name="absent")["error"]["code"] == -32602


def test_thousands_of_tools_are_listed_in_pages():
    with starting(tools=[], tool_count=3000, page_size=1000) as client:
        page = client.request("tools/list")["result"]
        assert (len(page["tools"]), page["nextCursor"]) == (1000, "1000/0")
        assert client.tools() == [f"tool_{number:05}" for number in range(3000)]
        assert client.request("tools/list", cursor="nonsense")["error"]["code"] == -32602


def test_endless_list_always_returns_a_new_cursor():
    with starting(tool_count=3, page_size=2, endless_cursor=True) as client:
        cursors, page = set(), client.request("tools/list")["result"]
        for _ in range(10):
            cursors.add(page["nextCursor"])
            page = client.request("tools/list", cursor=page["nextCursor"])["result"]
            assert len(page["tools"]) == 2
        assert len(cursors) == 10


@pytest.mark.parametrize(("place", "method"), [("initialize", "initialize"), ("list", "tools/list")])
def test_server_only_hangs_at_the_configured_place(place, method):
    with starting(hang_at=place) as client:
        assert is_silent(client, client.ask(method, protocolVersion=VERSION))


def test_hang_in_a_call_only_affects_its_tool():
    with starting(tools=[{"name": "quick"}, {"name": "stuck", "does": {"hang_at": "call"}}]) as client:
        stuck = client.ask("tools/call", name="stuck")
        assert client.call("quick", text="done")["content"][0]["text"] == "done"
        assert is_silent(client, stuck)


def test_hang_at_the_start_ignores_the_end_of_stdin(pid_file):
    with starting(hang_at="start", pid_file=str(pid_file)) as client:
        assert pids_in(pid_file, count=1) == [client.process.pid]
        client.ask("ping")
        client.hang_up()
        with pytest.raises(subprocess.TimeoutExpired):
            client.process.wait(A_MOMENT_S)
        client.process.terminate()
        assert client.line() == b""
        assert client.ended()[0] == -signal.SIGTERM


@pytest.mark.parametrize(
    ("place", "method"),
    [("start", None), ("initialize", "initialize"), ("list", "tools/list"), ("call", "tools/call")],
)
def test_server_crashes_at_its_place_with_code_and_stderr(place, method):
    with starting(crash_at=place, crash_code=7, crash_stderr="no more disk\n") as client:
        if method:
            client.request("ping")
            client.ask(method, name="echo")
        assert client.line() == b""
        assert client.ended() == (7, "no more disk\n")


def test_crash_can_be_a_signal_after_half_an_answer():
    with starting(crash_at="answer", crash_code=-9) as client:
        client.ask("tools/call", name="echo", arguments={"text": "hello"})
        line = client.line()
        assert line.startswith(b'{"jsonrpc": "2.0"')
        assert not line.endswith((b"}", b"\n"))
        assert client.ended()[0] == -signal.SIGKILL


def test_single_crash_does_not_repeat_after_a_restart(tmp_path):
    command = scripted(crash_at="call", crash_once=str(tmp_path / "crashed"))
    with RawClient(command) as client:
        client.ask("tools/call", name="echo")
        assert client.ended()[0] == 3
    with RawClient(command) as client:
        assert text_of(client.call(text="again")) == "again"


@pytest.mark.parametrize("delay", [A_MOMENT_S, {"list": A_MOMENT_S}])
def test_delayed_answer_arrives_after_the_others(delay):
    with starting(delay_s=delay) as client:
        slow = client.ask("tools/list")
        client.request("ping")
        assert client.received == []
        assert client.response(slow)["result"]["tools"]


def test_stderr_is_written_at_the_start():
    with starting(stderr="warming up\n") as client:
        client.hang_up()
        assert client.ended() == (0, "warming up\n")


def test_garbage_precedes_every_message():
    with starting(garbage=["text", "blank", "binary", "half", "json"]) as client:
        client.ask("ping")
        lines = [client.line() for _ in range(11)]
        assert lines[0].startswith(b"Server is starting")
        assert lines[1:4] == [b"\n", b"   \n", b"\r\n"]
        for broken in lines[4:6]:
            with pytest.raises(ValueError):
                json.loads(broken)
        assert [json.loads(line) for line in lines[6:10]] == [42, [], {"hello": "world"}, None]
        assert json.loads(lines[10]) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_message_in_pieces_is_unchanged():
    with starting(piece_bytes=3) as client:
        assert text_of(client.call(text="in pieces")) == "in pieces"


def test_pieces_are_written_one_by_one():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with near, far, subprocess.Popen(scripted(piece_bytes=20), stdin=subprocess.PIPE, stdout=far) as process:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert [near.recv(100) for _ in range(3)] == [b'{"jsonrpc": "2.0", "', b'id": 1, "result": {}', b"}\n"]
        process.kill()


def test_server_outlives_sigterm():
    with starting(ignore_sigterm=True) as client:
        client.request("ping")
        client.process.terminate()
        assert client.request("ping")["result"] == {}
        client.hang_up()
        assert client.ended()[0] == 0


def test_server_outlives_the_end_of_stdin():
    with starting(ignore_eof=True) as client:
        client.request("ping")
        client.hang_up()
        with pytest.raises(subprocess.TimeoutExpired):
            client.process.wait(A_MOMENT_S)
        client.process.terminate()
        assert client.ended()[0] == -signal.SIGTERM


def test_left_processes_ignore_sigterm_and_outlive_the_server(pid_file):
    with starting(fork=["child", "session", "daemon"], pid_file=str(pid_file)) as client:
        client.request("ping")
        server, child, session, daemon = pids_in(pid_file, count=4)
        assert server == client.process.pid
        assert [os.getsid(pid) == os.getsid(server) for pid in (child, session, daemon)] == [True, False, False]
        for pid in (child, session, daemon):
            os.kill(pid, signal.SIGTERM)
        client.hang_up()
        assert client.process.wait(PATIENCE_S) == 0
        for pid in (child, session, daemon):
            os.kill(pid, 0)


def test_server_exits_and_its_child_continues(pid_file):
    with starting(fork_and_exit="serve", pid_file=str(pid_file)) as client:
        assert client.process.wait(PATIENCE_S) == 0
        assert text_of(client.call(text="from the child")) == "from the child"
        server, child = pids_in(pid_file, count=2)
        assert server == client.process.pid != child
        client.hang_up()
        wait_until_gone([child])


def test_server_exits_and_its_child_holds_the_pipes(pid_file):
    with starting(fork_and_exit="hold", pid_file=str(pid_file)) as client:
        assert client.process.wait(PATIENCE_S) == 0
        _, child = pids_in(pid_file, count=2)
        client.ask("ping")
        client.hang_up()
        os.kill(child, signal.SIGTERM)
        os.kill(child, 0)
        assert client.is_quiet(A_MOMENT_S)
        os.kill(child, signal.SIGKILL)
        assert client.line() == b""


def test_result_can_be_large():
    with starting(result_bytes=20_000_000) as client:
        assert text_of(client.call()) == "x" * 20_000_000


def test_server_reports_its_process(tmp_path):
    environment = {"GIVEN": "canary", "HIDDEN": "other"}
    with RawClient(scripted(echo_env=["GIVEN", "ABSENT"]), cwd=tmp_path, env=environment) as client:
        shown = json.loads(text_of(client.call()))
        assert shown == {"pid": client.process.pid, "cwd": str(tmp_path), "env": {"GIVEN": "canary"}}
    with RawClient(scripted(echo_env=True), env=environment) as client:
        assert json.loads(text_of(client.call()))["env"].items() >= environment.items()


def test_each_call_adds_a_tool_and_announces_it():
    with starting(list_changed_after_call=True) as client:
        client.call()
        client.until(lambda message: message.get("method") == "notifications/tools/list_changed")
        assert client.tools() == ["echo", "added_1"]
        assert text_of(client.call("added_1", text="new")) == "new"


def test_logs_and_progress_precede_the_answer():
    with starting(log=[{"level": "warning", "data": "hot"}], progress=2) as client:
        client.request("tools/call", name="echo", arguments={}, _meta={"progressToken": "t"})
        log, *steps = [message["params"] for message in client.received]
        assert log == {"level": "warning", "data": "hot"}
        assert steps == [
            {"progressToken": "t", "progress": number, "total": 2, "message": f"step {number}"} for number in (1, 2)
        ]


def test_without_a_token_there_is_no_progress():
    with starting(progress=2) as client:
        client.call()
        assert client.received == []


@pytest.mark.parametrize("string_ids", [False, True])
def test_server_asks_the_client_and_returns_the_answers(string_ids):
    form = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
    sample = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
    with starting(elicit=form, sample=sample, roots=True, string_ids=string_ids) as client:
        call = client.ask("tools/call", name="echo", arguments={})
        asked = []
        for answer in ({"result": {"action": "decline"}}, {"error": {"code": -1, "message": "no"}}, {"result": {}}):
            asked.append(client.until(lambda message: "method" in message))
            client.send(id=asked[-1]["id"], **answer)
        texts = [json.loads(content["text"]) for content in client.response(call)["result"]["content"]]
    assert [(request["method"], request["params"]) for request in asked] == [
        ("elicitation/create", form),
        ("sampling/createMessage", sample),
        ("roots/list", {}),
    ]
    assert [request["id"] for request in asked] == (["ask-1", "ask-2", "ask-3"] if string_ids else [1, 2, 3])
    assert texts == [
        {"elicit": {"result": {"action": "decline"}}},
        {"sample": {"error": {"code": -1, "message": "no"}}},
        {"roots": {"result": {}}},
    ]


def test_unknown_method_is_refused_or_ignored():
    with starting() as client:
        assert client.request("server/discover")["error"]["code"] == -32601
    with starting(ignore_unknown_methods=True) as client:
        assert is_silent(client, client.ask("server/discover"))


@pytest.mark.parametrize("waiting", [{"hang_at": "call"}, {"roots": True}, {"delay_s": {"call": 60}}])
def test_cancelled_call_is_recorded_and_not_answered(waiting, tmp_path):
    file = tmp_path / "cancelled"
    with starting(cancel_file=str(file), **waiting) as client:
        call = client.ask("tools/call", name="echo")
        client.send(method="notifications/cancelled", params={"requestId": 99})
        client.send(method="notifications/cancelled", params={"requestId": call, "reason": "too slow"})
        wait_until(file.exists)
        assert is_silent(client, call)
        assert [json.loads(line) for line in file.read_text().splitlines()] == [
            {"requestId": call, "reason": "too slow"}
        ]


def test_late_cancellation_is_not_recorded(tmp_path):
    file = tmp_path / "cancelled"
    with starting(cancel_file=str(file)) as client:
        client.call()
        client.send(method="notifications/cancelled", params={"requestId": 1})
        client.request("ping")
        assert not file.exists()


def test_received_messages_are_recorded(tmp_path):
    file = tmp_path / "record"
    with starting(record=str(file)) as client:
        client.initialize()
        client.request("ping")
        methods = [json.loads(line)["method"] for line in file.read_text().splitlines()]
        assert methods == ["initialize", "notifications/initialized", "ping"]


def test_prompts_accept_arguments():
    arguments = [{"name": "city", "required": True}, {"name": "day"}]
    prompt = {"name": "weather", "description": "Ask for weather", "arguments": arguments}
    with starting(prompts=[{**prompt, "text": "Weather in {city} {day}?"}]) as client:
        assert client.initialize()["capabilities"]["prompts"] == {}
        assert client.request("prompts/list")["result"]["prompts"] == [prompt]
        [message] = client.request("prompts/get", name="weather", arguments={"city": "Bern"})["result"]["messages"]
        assert message == {"role": "user", "content": {"type": "text", "text": "Weather in Bern ?"}}
        assert "city" in client.request("prompts/get", name="weather")["error"]["message"]
    with starting() as client:
        assert "prompts" not in client.initialize()["capabilities"]
        assert client.request("prompts/list")["error"]["code"] == -32601
