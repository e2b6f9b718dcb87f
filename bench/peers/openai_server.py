"""A very cheap model provider on the loopback interface, in OpenAI's chat format.

openai_server.py: prints its address and serves until stdin ends. The name of the model selects the answer:
``chunks-N`` N chunks of 40 bytes, ``paced-N`` N chunks one by one, ``calls-N`` N tool calls, one per reply, and then a
word.
"""

import asyncio
import json
import re
import sys
from collections.abc import Iterator

CHUNK_BYTES = 40
PACE_S = 0.001
TOOL = "read_file"
ARGUMENTS = '{"path":"tiny.txt"}'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
MODEL = re.compile(rb'"model":\s*"(chunks|paced|calls)-(\d+)"')
TOOL_RESULT = re.compile(rb'"role":\s*"tool"')
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def frame(data: str) -> bytes:
    event = f"data: {data}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(event), event)


def chunk(delta: dict[str, object] | None, finish: str | None = None, **more: object) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return frame(json.dumps({**head, "choices": choices, **more}))


def ending(finish: str) -> Iterator[bytes]:
    yield chunk({}, finish)
    yield chunk(None, usage={"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
    yield frame("[DONE]") + END


def say(chunks: int) -> list[bytes]:
    text = chunk({"role": "assistant", "content": "x" * CHUNK_BYTES})
    return [HEAD, *([text] * chunks), *ending("stop")]


def call(number: int) -> list[bytes]:
    function = {"name": TOOL, "arguments": ARGUMENTS}
    made = {"index": 0, "id": f"call-{number}", "type": "function", "function": function}
    return [HEAD, chunk({"role": "assistant", "tool_calls": [made]}), *ending("tool_calls")]


async def answer(body: bytes, writer: asyncio.StreamWriter) -> None:
    found = MODEL.search(body)
    if found is None:
        raise ValueError("the request names none of the models")
    kind, count = found[1], int(found[2])
    if kind == b"paced":
        for piece in say(count):
            writer.write(piece)
            await asyncio.sleep(PACE_S)
        return
    made = len(TOOL_RESULT.findall(body))
    writer.writelines(call(made) if kind == b"calls" and made < count else say(1 if kind == b"calls" else count))
    await writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            await answer(await reader.readexactly(int(length[1]) if length else 0), writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
