"""A model provider on the loopback interface for foreign agents, in the formats of OpenAI, Anthropic and Google.

model_provider.py: prints its address and serves until stdin ends. A prompt with the words RUN IT is answered with one
call of the first tool that accepts a `command`, and then with a sentence. Any other prompt is answered with a sentence.
"""

import json
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import urlsplit

RUN_IT = "RUN IT"
COMMAND = "echo checked > checked.txt"
WORDS = "That is all there is to say."
MODEL = "checked-model"
NUMBERS = count(1)
"""Counts all IDs, because agents store answers and tool calls by them."""


def find_tool(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the name and the schema of the first tool of a request that accepts a command."""
    tools: list[dict[str, Any]] = []
    for each in body.get("tools") or []:
        tools += each.get("functionDeclarations") or [each.get("function") or each]
    for tool in tools:
        schema = next(
            (tool[name] for name in ("parameters", "input_schema", "parametersJsonSchema") if name in tool), {}
        )
        if {"command", "cmd"} & (schema.get("properties") or {}).keys():
            return {"name": tool["name"], "schema": schema}
    return None


def make_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Build the arguments of a tool: the command in the accepted form, and text for all other required parameters."""
    made: dict[str, Any] = {}
    named = "command" if "command" in schema["properties"] else "cmd"
    for name in {named, *schema.get("required", [])}:
        kind = schema["properties"].get(name, {}).get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if name == named:
            made[name] = ["sh", "-c", COMMAND] if kind in ("array", "ARRAY") else COMMAND
        else:
            made[name] = {"boolean": False, "number": 1000, "integer": 1000}.get(str(kind).lower(), "checked")
    return made


def wanted_call(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the tool call that a request asks for, if the last user turn has the words and no result yet."""
    turns = body.get("messages") or body.get("input") or body.get("contents") or []
    tail = json.dumps(turns[_last_person(turns) :]) if isinstance(turns, list) else str(turns)
    results = ('"tool_call_id"', '"tool_result"', "function_call_output", '"functionResponse"')
    if RUN_IT not in tail or any(each in tail for each in results):
        return None
    return find_tool(body)


def _last_person(turns: list[Any]) -> int:
    said = [at for at, turn in enumerate(turns) if RUN_IT in json.dumps(turn)]
    return said[-1] if said else max(len(turns) - 1, 0)


def _new_id(prefix: str) -> str:
    return f"{prefix}_{next(NUMBERS)}"


# ── the formats: each returns the whole answer and its events ───────────────────────────────────────


def chat(call: dict[str, Any] | None) -> tuple[Any, list[Any]]:
    message: dict[str, Any] = {"role": "assistant", "content": None if call else WORDS}
    if call:
        function = {"name": call["name"], "arguments": json.dumps(make_arguments(call["schema"]))}
        message["tool_calls"] = [{"index": 0, "id": _new_id("call"), "type": "function", "function": function}]
    reason = "tool_calls" if call else "stop"
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    head = {"id": _new_id("c"), "created": 1, "model": MODEL}
    whole = {**head, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
    part = {**head, "object": "chat.completion.chunk"}
    events = [
        {**part, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**part, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**part, "choices": [], "usage": usage},
        "[DONE]",
    ]
    return whole, events


def responses(call: dict[str, Any] | None) -> tuple[Any, list[Any]]:
    if call:
        arguments = json.dumps(make_arguments(call["schema"]))
        item: dict[str, Any] = {
            "type": "function_call",
            "id": _new_id("f"),
            "call_id": _new_id("call"),
            "name": call["name"],
        }
        item |= {"arguments": arguments, "status": "completed"}
        deltas: list[Any] = []
    else:
        text = {"type": "output_text", "text": WORDS, "annotations": []}
        item = {"type": "message", "id": _new_id("m"), "role": "assistant", "status": "completed", "content": [text]}
        deltas = [{"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0}]
        deltas[0]["delta"] = WORDS
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18, "input_tokens_details": {"cached_tokens": 0}}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    whole = {"id": _new_id("r"), "object": "response", "created_at": 1, "model": MODEL, "status": "completed"}
    whole |= {"output": [item], "usage": usage}
    events = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        *deltas,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return whole, events


def messages(call: dict[str, Any] | None) -> tuple[Any, list[Any]]:
    if call:
        given = make_arguments(call["schema"])
        block: dict[str, Any] = {
            "type": "tool_use",
            "id": _new_id("toolu"),
            "name": call["name"],
            "input": given,
        }
        begin, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(given)}
    else:
        block = {"type": "text", "text": WORDS}
        begin, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": WORDS}
    reason = "tool_use" if call else "end_turn"
    head = {"id": _new_id("msg"), "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None}
    usage = {"input_tokens": 11, "output_tokens": 7}
    whole = {**head, "content": [block], "stop_reason": reason, "usage": usage}
    events = [
        {"type": "message_start", "message": {**head, "content": [], "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": begin},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return whole, events


def contents(call: dict[str, Any] | None) -> tuple[Any, list[Any]]:
    part = {"functionCall": {"name": call["name"], "args": make_arguments(call["schema"])}} if call else {"text": WORDS}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL}
    return whole, [whole]


FORMATS = {"/chat/completions": chat, "/responses": responses, "/messages": messages}


class Provider(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        with suppress(ConnectionError):  # the agent has disconnected
            super().handle()

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = urlsplit(self.path).path
        if path.endswith(("/count_tokens", ":countTokens")):
            self._send("application/json", json.dumps({"input_tokens": 11, "totalTokens": 11}))
            return
        format_ = next((each for end, each in FORMATS.items() if path.endswith(end)), contents)
        whole, events = format_(wanted_call(body))
        if not body.get("stream") and not path.endswith(":streamGenerateContent"):
            self._send("application/json", json.dumps(whole))
            return
        named = format_ in (responses, messages)
        self._send("text/event-stream", "".join(_event(each, named=named) for each in events))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name of the base class
        """Log nothing."""

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _event(event: Any, *, named: bool) -> str:
    data = event if isinstance(event, str) else json.dumps(event)
    name = f"event: {event['type']}\n" if named else ""
    return f"{name}data: {data}\n\n"


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
