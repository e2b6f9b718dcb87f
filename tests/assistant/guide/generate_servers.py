"""Writes `servers.json`: the tools of real MCP servers as a session of ours puts them in front of its model.

Run it from the root when a server has a new version: `.venv/bin/python -m tests.assistant.guide.generate_servers`.
"""

import asyncio
import json
import tempfile
from pathlib import Path

import msgspec

from dragoman.assistant.models.model import ReplyText
from dragoman.protocol import methods, v1
from tests.assistant.running import running_agent
from tests.mcp.servers.commands import EVERYTHING, TIME, filesystem, git

TARGET = Path(__file__).parent / "servers.json"


class Recorder:
    """A model that keeps the tools it is given."""

    name, context_size, takes, thought_levels, summarises = "recorder", 1000, frozenset(), (), False

    def __init__(self):
        self.tools = ()

    def start(self):
        return self

    async def reply(self, request):
        self.tools = request.tools
        yield ReplyText("Noted.")

    async def close(self):
        pass


async def record(folder):
    commands = {"time": TIME, "everything": EVERYTHING, "filesystem": filesystem(folder), "git": git(folder)}
    servers = [v1.McpServerStdio(name=name, command=one[0], args=one[1:], env=[]) for name, one in commands.items()]
    model = Recorder()
    async with running_agent(folder / "home", model=model) as client:
        await client.initialize()
        request = v1.NewSessionRequest(cwd=str(folder), mcp_servers=servers)
        session = await client.connection.call(methods.SESSION_NEW, request)
        await client.prompt(session.session_id, "hello")
    found = [tool for tool in model.tools if "__" in tool.name]
    seen = {tool.name.partition("__")[0] for tool in found}
    assert seen == set(commands), f"only {', '.join(sorted(seen))} had tools"
    return found


async def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = await asyncio.create_subprocess_exec("git", "init", "-q", name)
        await process.wait()
        found = await record(folder)
        text = json.dumps(msgspec.to_builtins(found), indent=1, ensure_ascii=False)
        assert name not in text, "a tool speaks of the temporary folder"
        TARGET.write_text(f"{text}\n", encoding="utf-8")
    print(f"{len(found)} tools")


if __name__ == "__main__":
    asyncio.run(main())
