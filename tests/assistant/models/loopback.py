"""A model provider on the loopback interface with four streaming formats.

A test passes one answer per expected request: a `Stream` (what the provider sends, and how it ends) or a `Refusal`. The
provider records every request and notices when the client disconnects.
"""

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass
class Stream:
    """Events of a reply. `end` is `done`, `drop` (the connection breaks) or `hang` (nothing more comes)."""

    events: list[bytes]
    end: str = "done"


@dataclass
class Refusal:
    """An answer that is an error."""

    status: int
    message: str = "no"
    headers: dict[str, str] = field(default_factory=dict)
    error: dict[str, str] = field(default_factory=dict)

    def body(self):
        error = {"type": "error", "message": self.message, "code": None, **self.error}
        return json.dumps({"type": "error", "error": error}).encode()


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict


class Loopback:
    """The server. Sends the answers in order, and repeats the last one."""

    def __init__(self, answers):
        self.connections = {}
        self.url = ""
        self.begin_anew(*answers)

    def begin_anew(self, *answers):
        """Forget the requests and use these answers from now on."""
        self._answers = list(answers)
        self.requests: list[Request] = []
        self.arrived = asyncio.Event()
        self.hung_up = asyncio.Event()

    @property
    def connection_count(self):
        return len(self.connections)

    async def serve(self, reader, writer):
        self.connections[writer] = asyncio.current_task()
        try:
            while (request := await self._read(reader)) is not None:
                self.requests.append(request)
                self.arrived.set()
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                if not await self._answer(answer, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            del self.connections[writer]
            writer.close()

    async def close(self):
        """Break the remaining connections and wait until they are closed."""
        tasks = list(self.connections.values())
        for writer in list(self.connections):
            writer.transport.abort()
        if tasks:
            await asyncio.wait(tasks)

    async def _read(self, reader):
        head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
        if not head:
            return None
        first, *lines = head.decode().splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Request(first.split()[1], headers, json.loads(body or b"{}"))

    async def _answer(self, answer, reader, writer):
        if isinstance(answer, Refusal):
            body = answer.body()
            extra = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
            head = f"HTTP/1.1 {answer.status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            writer.write(f"{head}{extra}\r\n".encode() + body)
            await writer.drain()
            return True
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for event in answer.events:
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
        if answer.end == "done":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        if answer.end == "hang":
            await reader.read(1)  # only the end of the connection can come
            self.hung_up.set()
        return False


@asynccontextmanager
async def loopback(*answers):
    """Run the provider during a test."""
    provider = Loopback(answers)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, limit=2**24)
    provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield provider
    finally:
        server.close()
        await provider.close()
        await server.wait_closed()


def sse(data, event=None):
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


class Chat:
    """OpenAI's chat completions."""

    model = "openai:gpt-test"
    base_path = "/v1"
    path = "/v1/chat/completions"
    finishes = MappingProxyType(
        {"stop": "stop", "length": "length", "refusal": "content_filter", "tools": "tool_calls"}
    )

    def reply(self, *pieces, finish="stop", usage=(11, 7), details=None, end="done"):
        events = []
        for place, (kind, *rest) in enumerate(pieces):
            events += getattr(self, kind)(place, *rest)
        if end == "done":
            events.append(self.chunk({}, self.finishes[finish]))
            tokens = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
            events.append(self.chunk(None, None, usage=tokens | (details or {})))
            events.append(sse("[DONE]"))
        return Stream(events, end)

    def chunk(self, delta, finish=None, **more):
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test"}
        return sse({**head, "choices": choices, **more})

    def text(self, place, *texts):
        return [self.chunk({"role": "assistant", "content": text}) for text in texts]

    def thought(self, place, *texts):
        return [self.chunk({"reasoning_content": text}) for text in texts]

    def call(self, place, call_id, name, *fragments):
        first = {"index": place, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        rest = [{"index": place, "function": {"arguments": fragment}} for fragment in fragments]
        return [self.chunk({"tool_calls": [part]}) for part in (first, *rest)]

    def raw(self, place, data):
        return [data]

    def calls_in_turns(self, place, *calls):
        """Interleave the fragments of several calls."""
        streams = [self.call(number, *call) for number, call in enumerate(calls)]
        return [event for events in zip(*streams, strict=True) for event in events]

    def said_to_it(self, request):
        return request.body["messages"]


class Anthropic:
    """Anthropic's messages."""

    model = "anthropic:claude-opus-5"
    base_path = ""
    path = "/v1/messages"
    finishes = MappingProxyType({"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "tools": "tool_use"})

    def reply(self, *pieces, finish="stop", usage=(11, 7), end="done"):
        message = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": []}
        start = {**message, "stop_reason": None, "stop_sequence": None}
        start["usage"] = {"input_tokens": usage[0], "output_tokens": 1}
        events = [self.event("message_start", message=start)]
        for place, (kind, *rest) in enumerate(pieces):
            events += getattr(self, kind)(place, *rest)
        if end == "done":
            events += [self.ending(finish, usage[1]), self.event("message_stop")]
        return Stream(events, end)

    def ending(self, finish, output_tokens):
        delta = {"stop_reason": self.finishes[finish], "stop_sequence": None}
        return self.event("message_delta", delta=delta, usage={"output_tokens": output_tokens})

    def event(self, kind, **fields):
        return sse({"type": kind, **fields}, kind)

    def block(self, place, block, deltas):
        events = [self.event("content_block_start", index=place, content_block=block)]
        events += [self.event("content_block_delta", index=place, delta=delta) for delta in deltas]
        return [*events, self.event("content_block_stop", index=place)]

    def text(self, place, *texts):
        deltas = [{"type": "text_delta", "text": text} for text in texts]
        return self.block(place, {"type": "text", "text": ""}, deltas)

    def thought(self, place, *texts):
        deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
        deltas.append({"type": "signature_delta", "signature": f"signed-{place}"})
        return self.block(place, {"type": "thinking", "thinking": "", "signature": ""}, deltas)

    def call(self, place, call_id, name, *fragments):
        deltas = [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments]
        return self.block(place, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas)

    def raw(self, place, data):
        return [data]

    def said_to_it(self, request):
        return request.body["messages"]


class Responses:
    """OpenAI's responses."""

    model = "openai-responses:gpt-5-test"
    base_path = "/v1"
    path = "/v1/responses"

    def reply(self, *pieces, finish="stop", usage=(11, 7), end="done"):
        self._number = 0
        head = {"id": "r1", "object": "response", "created_at": 1, "model": "gpt-5-test", "output": []}
        head |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress"}
        events = [self.event("response.created", response=head)]
        for place, (kind, *rest) in enumerate(pieces):
            events += getattr(self, kind)(place, *rest)
        if end == "done":
            tokens = {"input_tokens": usage[0], "output_tokens": usage[1], "total_tokens": sum(usage)}
            tokens |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
            events.append(self.ending(head | {"usage": tokens}, finish))
        return Stream(events, end)

    def ending(self, response, finish):
        if finish in ("length", "refusal"):
            reason = {"length": "max_output_tokens", "refusal": "content_filter"}[finish]
            response |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
            return self.event("response.incomplete", response=response)
        return self.event("response.completed", response=response | {"status": "completed"})

    def event(self, kind, **fields):
        self._number += 1
        return sse({"type": kind, "sequence_number": self._number, **fields}, kind)

    def text(self, place, *texts):
        item = {"type": "message", "id": f"msg_{place}", "role": "assistant", "status": "in_progress", "content": []}
        at = {"item_id": item["id"], "output_index": place, "content_index": 0}
        done = {"type": "output_text", "text": "".join(texts), "annotations": [], "logprobs": []}
        return [
            self.event("response.output_item.added", output_index=place, item=item),
            self.event("response.content_part.added", **at, part=done | {"text": ""}),
            *[self.event("response.output_text.delta", **at, delta=text, logprobs=[]) for text in texts],
            self.event("response.output_text.done", **at, text=done["text"], logprobs=[]),
            self.event("response.content_part.done", **at, part=done),
            self.event(
                "response.output_item.done",
                output_index=place,
                item=item | {"status": "completed", "content": [done]},
            ),
        ]

    def thought(self, place, *texts):
        item = {"type": "reasoning", "id": f"rs_{place}", "summary": []}
        at = {"item_id": item["id"], "output_index": place, "summary_index": 0}
        done = {"type": "summary_text", "text": "".join(texts)}
        return [
            self.event("response.output_item.added", output_index=place, item=item),
            self.event("response.reasoning_summary_part.added", **at, part=done | {"text": ""}),
            *[self.event("response.reasoning_summary_text.delta", **at, delta=text) for text in texts],
            self.event("response.reasoning_summary_text.done", **at, text=done["text"]),
            self.event("response.reasoning_summary_part.done", **at, part=done),
            self.event(
                "response.output_item.done",
                output_index=place,
                item=item | {"summary": [done], "encrypted_content": f"signed-{place}"},
            ),
        ]

    def call(self, place, call_id, name, *fragments):
        item = {"type": "function_call", "id": f"fc_{place}", "call_id": call_id, "name": name, "arguments": ""}
        at = {"item_id": item["id"], "output_index": place}
        whole = "".join(fragments)
        return [
            self.event("response.output_item.added", output_index=place, item=item | {"status": "in_progress"}),
            *[self.event("response.function_call_arguments.delta", **at, delta=piece) for piece in fragments],
            self.event("response.function_call_arguments.done", **at, name=name, arguments=whole),
            self.event(
                "response.output_item.done",
                output_index=place,
                item=item | {"status": "completed", "arguments": whole},
            ),
        ]

    def raw(self, place, data):
        return [data]

    def said_to_it(self, request):
        return request.body["input"]


class Google:
    """Google's generated content. A call arrives complete, with its arguments as JSON."""

    model = "google:gemini-3-pro-preview"
    base_path = ""
    path = "/v1/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
    finishes = MappingProxyType({"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "tools": "STOP"})

    def reply(self, *pieces, finish="stop", usage=(11, 7), end="done"):
        events = []
        for place, (kind, *rest) in enumerate(pieces):
            events += getattr(self, kind)(place, *rest)
        if end == "done":
            tokens = {"promptTokenCount": usage[0], "candidatesTokenCount": usage[1], "totalTokenCount": sum(usage)}
            events.append(self.chunk([], finishReason=self.finishes[finish], usage=tokens))
        return Stream(events, end)

    def chunk(self, parts, usage=None, **candidate):
        content = {"role": "model", "parts": parts}
        event = {"candidates": [{"content": content, "index": 0, **candidate}], "responseId": "r1"}
        return sse({**event, "modelVersion": "gemini-3-pro-preview", **({"usageMetadata": usage} if usage else {})})

    def text(self, place, *texts):
        return [self.chunk([{"text": text}]) for text in texts]

    def thought(self, place, *texts):
        parts = [{"text": text, "thought": True} for text in texts]
        parts[-1]["thoughtSignature"] = base64.b64encode(f"signed-{place}".encode()).decode()
        return [self.chunk([part]) for part in parts]

    def call(self, place, call_id, name, *fragments):
        call = {"id": call_id, "name": name, "args": json.loads("".join(fragments) or "{}")}
        return [self.chunk([{"functionCall": call}])]

    def raw(self, place, data):
        return [data]

    def said_to_it(self, request):
        return request.body["contents"]
