"""The data that `dragoman run` with our agent and an MCP server sends to a collector, from three processes."""

import json
import os
import sys

import pytest

from dragoman.bridge import AgentSpec
from tests.bridge.versions.pairs import join_v2
from tests.bridge.viewers import join, serve
from tests.commands import DRAGOMAN, start_dragoman
from tests.telemetry.collector import attributes, collecting

SECRETS = ("the-words-of-the-person", "the-words-of-the-model", "the-argument", "the-words-of-the-server")

SCRIPT = """
- - tool: {name: notes__look_up, arguments: {word: the-argument}}
  - usage: {input: 11, output: 2}
- - text: the-words-of-the-model
  - usage: {input: 20, output: 3}
"""

SERVER = """
import sys
from mcp.server.mcpserver import MCPServer, Context

server = MCPServer("notes")

@server.tool()
def look_up(word: str, context: Context) -> str:
    meta = context.request_context.meta or {}
    open(sys.argv[1], "w").write(str(meta.get("traceparent")))
    return "the-words-of-the-server"

server.run()
"""

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}


def run(tmp_path, collector, **variables):
    """Run one turn with a tool call through our agent. Return the trace context that the MCP server received."""
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "server.py").write_text(SERVER)
    seen = tmp_path / "seen"
    servers = {"mcpServers": {"notes": {"command": sys.executable, "args": [str(tmp_path / "server.py"), str(seen)]}}}
    (tmp_path / "servers.json").write_text(json.dumps(servers))
    agent = [*DRAGOMAN, "agent", "--model", f"script:{tmp_path / 'script.yaml'}"]
    environment = {**ENVIRONMENT, "DRAGOMAN_HOME": str(tmp_path / "home"), **variables}
    if collector is not None:
        environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
    asked = ["run", "the-words-of-the-person", "--cwd", str(tmp_path), "--policy", "all"]
    done = start_dragoman(*asked, "--mcp", str(tmp_path / "servers.json"), "--", *agent, env=environment)
    assert (done.returncode, done.stdout.strip()) == (0, "the-words-of-the-model"), done.stderr
    return seen.read_text(), done.stderr


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    with collecting() as collector:
        traceparent, _ = run(tmp_path_factory.mktemp("run"), collector)
        yield collector, traceparent


def test_spans_of_three_processes_form_one_trace(collected):
    collector, traceparent = collected
    sent, turn = sorted(collector.spans("invoke_agent dragoman"), key=lambda span: span.start_time_unix_nano)
    chats = collector.spans("chat script")
    tool, call = collector.span("execute_tool notes__look_up"), collector.span("tools/call look_up")
    assert sent.parent_span_id == b""
    assert turn.parent_span_id == sent.span_id
    assert {chat.parent_span_id for chat in (*chats, tool)} == {turn.span_id}
    assert len(chats) == 2
    assert call.parent_span_id == tool.span_id
    assert {span.trace_id for span in (sent, turn, tool, call, *chats)} == {sent.trace_id}
    assert traceparent.split("-")[1:3] == [call.trace_id.hex(), call.span_id.hex()]
    assert collector.services == {"dragoman", "dragoman-client"}


def test_names_and_attributes_follow_the_conventions(collected):
    collector, _ = collected
    sent, turn = sorted(collector.spans("invoke_agent dragoman"), key=lambda span: span.start_time_unix_nano)
    assert (sent.kind, turn.kind) == (3, 1)  # client, internal
    said = attributes(turn)
    assert said["gen_ai.operation.name"] == "invoke_agent"
    assert said["gen_ai.conversation.id"] == attributes(sent)["gen_ai.conversation.id"]
    assert said["gen_ai.response.finish_reasons"] == ["end_turn"]
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (31, 5)
    first, second = sorted(collector.spans("chat script"), key=lambda span: span.start_time_unix_nano)
    assert attributes(first)["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert attributes(second) | {"gen_ai.response.time_to_first_chunk": 0, "gen_ai.conversation.id": ""} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "script",
        "gen_ai.request.model": "script",
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": "",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.time_to_first_chunk": 0,
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 3,
    }
    call = attributes(collector.span("tools/call look_up"))
    assert (call["mcp.method.name"], call["gen_ai.operation.name"]) == ("tools/call", "execute_tool")
    assert call["gen_ai.tool.name"] == "look_up"


def test_turns_tokens_and_tool_calls_are_counted(collected):
    collector, _ = collected
    operations = collector.points("gen_ai.client.operation.duration")
    counted = {}
    for point in operations:
        name = attributes(point)["gen_ai.operation.name"]
        counted[name] = counted.get(name, 0) + point.count
    assert counted == {"invoke_agent": 2, "chat": 2, "execute_tool": 1}  # one turn, seen by the client and by the agent
    tokens = {
        attributes(point)["gen_ai.token.type"]: point.sum for point in collector.points("gen_ai.client.token.usage")
    }
    assert tokens == {"input": 31, "output": 5}
    methods = {attributes(point)["mcp.method.name"] for point in collector.points("mcp.client.operation.duration")}
    assert "tools/call" in methods


def test_no_conversation_text_is_exported_by_default(collected):
    collector, _ = collected
    everything = b"".join(collector.bodies)
    assert [secret for secret in SECRETS if secret.encode() in everything] == []


@pytest.mark.extended
def test_text_is_captured_if_the_variable_enables_it(tmp_path):
    with collecting() as collector:
        run(tmp_path, collector, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true")
        tool = attributes(collector.span("execute_tool notes__look_up"))
        assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"word": "the-argument"}
        assert json.loads(tool["gen_ai.tool.call.result"]) == "the-words-of-the-server"
        turns = [attributes(span) for span in collector.spans("invoke_agent dragoman")]
        [asked] = [json.loads(each["gen_ai.input.messages"]) for each in turns if "gen_ai.input.messages" in each]
        assert asked == [{"role": "user", "parts": [{"type": "text", "content": "the-words-of-the-person"}]}]
        last = max(collector.spans("chat script"), key=lambda span: span.start_time_unix_nano)
        assert json.loads(attributes(last)["gen_ai.output.messages"])[0]["finish_reason"] == "stop"


@pytest.mark.extended
@pytest.mark.parametrize("enter", [join, join_v2])
async def test_trace_passes_through_the_bridge_to_a_v1_agent(tmp_path, enter):
    (tmp_path / "script.yaml").write_text("- - text: hello")
    command = (*DRAGOMAN, "agent", "--model", f"script:{tmp_path / 'script.yaml'}")
    with collecting() as collector:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "DRAGOMAN_ACP_V2": "0"}
        async with serve(tmp_path / "home", AgentSpec("one", command, env=variables)) as served:
            viewer = await enter(served)
            session = await viewer.new(cwd=str(tmp_path))
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
            await viewer.ask("session/prompt", {**prompt, "_meta": {"traceparent": TRACEPARENT}})
            await viewer.until(lambda message: "hello" in str(message))
        span = collector.span("invoke_agent dragoman")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == tuple(TRACEPARENT.split("-")[1:3])


@pytest.mark.extended
def test_missing_collector_does_not_fail_the_turn(tmp_path):
    with collecting() as collector:
        pass
    run(tmp_path, collector, OTEL_EXPORTER_OTLP_TIMEOUT="1")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        pytest.param(
            {"OTEL_TRACES_EXPORTER": "zipkin"},
            "there is no exporter 'zipkin' for traces",
            marks=pytest.mark.extended,
        ),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "proto-grpc",
            marks=pytest.mark.extended,
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "PYTHONPATH": "{without}"}, "[otel]"),
    ],
)
def test_missing_exporter_is_logged_and_the_turn_continues(tmp_path, variables, problem):
    without = tmp_path / "without" / "opentelemetry"
    without.mkdir(parents=True)
    (without / "__init__.py").write_text("raise ModuleNotFoundError('no opentelemetry', name='opentelemetry')")
    given = {name: value.format(without=without.parent) for name, value in variables.items()}
    _, stderr = run(tmp_path, None, **given)
    assert problem in stderr
