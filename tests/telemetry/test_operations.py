"""Spans of the kit, the client and served functions, recorded by the real SDK in this process."""

import asyncio
import json
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dragoman import telemetry
from dragoman.client.policies import deny_all
from dragoman.mcp.serving.function_server import FunctionServer, FunctionSession
from dragoman.telemetry.operation import trace_turn, use_tracer
from tests.agent.connecting import make_agent, session_with

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"


class Spans:
    def __init__(self):
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def all(self):
        return self._exporter.get_finished_spans()

    def named(self, name):
        [span] = [span for span in self.all() if span.name == name]
        return span


@pytest.fixture
def spans():
    spans = Spans()
    telemetry.enable(tracer_provider=spans.provider, meter_provider=MeterProvider(shutdown_on_exit=False))
    yield spans
    use_tracer(None)


def parent_of(span):
    return None if span.parent is None else f"{span.parent.span_id:016x}"


async def test_spans_of_the_program_are_part_of_the_turn(tmp_path, spans):
    async def answer(turn):
        with turn.model_request("gpt-5", provider="mistral") as request:
            request.record_first_piece()
            await turn.usage(input_tokens=7, output_tokens=3, cached_read_tokens=5)
            request.record_end("length", "the text")
        async with turn.tool("Look at secret.txt", kind="read", name="look"):
            trace.get_tracer("of the program", tracer_provider=spans.provider).start_span("its own").end()
        await turn.usage(input_tokens=1)

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        await session.run("the words")
    _, turn = sorted(
        (span for span in spans.all() if span.name == "invoke_agent test"), key=lambda span: span.start_time
    )
    chat, tool, own = spans.named("chat gpt-5"), spans.named("execute_tool look"), spans.named("its own")
    ids = [f"{each.context.span_id:016x}" for each in (turn, tool)]
    assert [parent_of(each) for each in (chat, tool, own)] == [ids[0], ids[0], ids[1]]
    assert chat.attributes["gen_ai.provider.name"] == "mistral_ai"
    assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 5
    assert (turn.attributes["gen_ai.usage.input_tokens"], chat.attributes["gen_ai.usage.input_tokens"]) == (8, 7)
    everything = " ".join(span.to_json() for span in spans.all())
    assert not [text for text in ("the words", "the text", "secret.txt") if text in everything]


async def test_failures_denials_and_cancellations_are_distinguished(tmp_path, spans):
    async def answer(turn):
        async with turn.tool("Write", kind="edit", name="denied", locations=["a"]) as call:
            assert not await call.allowed()
        with pytest.raises(LookupError):
            async with turn.tool("Fail", kind="read", name="broken"):
                raise LookupError("the words")
        async with turn.tool("Wait", kind="read", name="stopped"):
            running.set()
            await asyncio.Event().wait()

    running = asyncio.Event()
    async with session_with(make_agent(tmp_path, answer), tmp_path, policy=deny_all()) as session:
        turn = asyncio.ensure_future(session.run("go"))
        await running.wait()
        session.cancel()
        assert (await turn).stop_reason == "cancelled"
    outcomes = {span.name: (span.status.is_ok, span.attributes.get("error.type")) for span in spans.all()}
    assert outcomes == {
        "execute_tool denied": (False, "permission_denied"),
        "execute_tool broken": (False, "LookupError"),
        "execute_tool stopped": (True, None),
        "invoke_agent test": (True, None),
    }
    assert "the words" not in " ".join(span.to_json() for span in spans.all())


@pytest.mark.parametrize("bad", [None, 7, "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "x" * 10_000])
def test_turn_joins_the_trace_of_its_prompt_and_ignores_invalid_context(spans, bad):
    with trace_turn("agent", "1", "s", {"traceparent": TRACEPARENT, "baggage": "user=anna"}) as operation:
        assert operation.inject({"own": 1})["baggage"] == "user=anna"
    with trace_turn("agent", "1", "s", {"traceparent": bad}):
        pass
    known, unknown = spans.all()
    assert (f"{known.context.trace_id:032x}", parent_of(known)) == (TRACE_ID, PARENT_ID)
    assert unknown.parent is None


async def test_served_function_joins_the_callers_trace(spans):
    def fail():
        raise LookupError

    session = FunctionSession(FunctionServer([fail]))
    params = {"name": "fail", "arguments": {}, "_meta": {"traceparent": TRACEPARENT}}
    assert (await session.answer("tools/call", params, b"1", lambda *_: None))["isError"]
    span = spans.named("tools/call fail")
    assert (parent_of(span), span.kind, span.attributes["error.type"]) == (
        PARENT_ID,
        trace.SpanKind.SERVER,
        "tool_error",
    )


PROGRAM = """
import sys
from dragoman.agent import Agent

agent = Agent("test", home={home!r})
loaded_at_start = sorted(name for name in sys.modules if name.startswith("opentelemetry"))

@agent.on_prompt
async def answer(turn):
    async with turn.tool("Look", kind="read"):
        pass
    await turn.say(str(sorted(name for name in sys.modules if name.startswith("opentelemetry"))))

assert not loaded_at_start
agent.run()
"""


def test_opentelemetry_is_not_imported_while_telemetry_is_off(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(home=str(tmp_path / "home")))
    messages = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}},
    ]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:

        def send(message):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()

        def answer_to(id_):
            said = []
            for line in process.stdout:
                message = json.loads(line)
                said.append(message)
                if message.get("id") == id_:
                    return message["result"], said
            raise AssertionError("no answer")

        for message in messages:
            send(message)
        session_id = answer_to(2)[0]["sessionId"]
        prompt = [{"type": "text", "text": "go"}]
        send({"id": 3, "method": "session/prompt", "params": {"sessionId": session_id, "prompt": prompt}})
        _, said = answer_to(3)
        process.stdin.close()
    texts = [
        each["params"]["update"]["content"]["text"]
        for each in said
        if each.get("params", {}).get("update", {}).get("sessionUpdate") == "agent_message_chunk"
    ]
    assert texts == ["[]"]
