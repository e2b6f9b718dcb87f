"""The bare model library: no session, no log, no client.

bare_library.py URL MODEL FOLDER: asks the model twice, and prints the cost of the second time as JSON. The reply is
read and dropped. When the model calls a tool, a function reads the file in FOLDER, in the library's own loop.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import uvloop
from pydantic_ai import Agent
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

PROMPT = "Go on."


async def stream(model: OpenAIChatModel) -> None:
    async with model_request_stream(model, [ModelRequest.user_text_prompt(PROMPT)], instrument=False) as events:
        async for _event in events:
            pass
        events.get()


async def call_tools(model: OpenAIChatModel, folder: Path) -> None:
    agent = Agent(model)

    @agent.tool_plain
    def read_file(path: str) -> str:
        return (folder / path).read_text()

    async with agent.run_stream_events(PROMPT) as events:
        async for _event in events:
            pass


async def main() -> None:
    url, name, folder = sys.argv[1:]
    model = OpenAIChatModel(name, provider=OpenAIProvider(base_url=url, api_key="none"))
    ask = (lambda: call_tools(model, Path(folder))) if name.startswith("calls-") else (lambda: stream(model))
    await ask()
    started, started_cpu = time.perf_counter(), time.process_time()
    await ask()
    print(json.dumps({"wall_s": time.perf_counter() - started, "cpu_s": time.process_time() - started_cpu}))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
