"""A client for the official suite, as a session of our agent: `python -m tests.conformance.session_driver URL`.

A scripted model calls every tool of the server, or the calls that the suite names, one per reply. The script is written
at the model's first request, because the names of the tools come from the server. A scripted client allows every call
and accepts every form with only its required fields, so our agent must fill in the defaults. Prompts are used as
commands.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from dragoman.agent.servers.mcp_tool import name_tools
from dragoman.assistant.models.script import parse_script
from dragoman.protocol import v1
from dragoman.protocol.methods import ELICITATION_CREATE
from tests.assistant.running import running_agent
from tests.assistant.servers.talking import begin, said
from tests.conformance.driver import AcceptingHost, arguments_for

SERVER = "suite"
CAPABILITIES = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(form=v1.ElicitationFormCapabilities()))
DONE = [{"text": "done"}]


class SuiteModel:
    """Writes a script of calls for each session, with the tools of its first request."""

    def __init__(self, context):
        self._context = context
        self._script = parse_script(json.dumps([DONE]), "suite")

    def __getattr__(self, name):
        return getattr(self._script, name)

    def start(self):
        return SuiteConversation(self._context)


class SuiteConversation:
    """Makes the calls, and then finishes."""

    def __init__(self, context):
        self._context = context
        self._script = None

    def reply(self, request):
        if self._script is None:
            replies = [[{"tool": call}] for call in calls_of(self._context, request.tools)]
            self._script = parse_script(json.dumps([*replies, DONE]), "suite").start()
        return self._script.reply(request)


def calls_of(context, tools):
    """Return the calls to make: the ones that the suite names, else one of each tool of the server."""
    own = [tool for tool in tools if tool.name.startswith(f"{SERVER}__")]
    named = [(call["name"], call.get("arguments", {})) for call in context.get("toolCalls", [])]
    names = name_tools((SERVER, name) for name, _ in named)
    calls = [(names[SERVER, name], arguments) for name, arguments in named]
    calls = calls or [(tool.name, arguments_for(tool.parameters, own)) for tool in own]
    return [{"name": name, "arguments": arguments} for name, arguments in calls]


def accept_forms(client, directory):
    """Answer every form with its required fields."""
    host = AcceptingHost(directory)

    async def answer(params):
        accepted = await host.elicit(SERVER, {"requestedSchema": msgspec.to_builtins(params.requested_schema)})
        return v1.ElicitationAcceptAction(content=accepted["content"])

    client.routes.on_request(ELICITATION_CREATE, answer)


def failures_in(turn):
    """Return the texts of failed calls. Some servers of the suite offer items that they do not have."""
    return [said(each) for each in turn.calls if each["status"] == "failed" and "Method not found" not in said(each)]


async def main(url):
    """Use the server in a session. Return 1 if it cannot be used, or a call failed."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with TemporaryDirectory() as directory:
        async with running_agent(
            Path(directory, ".home"), model=SuiteModel(context), decide=lambda _: "allow", capabilities=CAPABILITIES
        ) as client:
            accept_forms(client, Path(directory))
            await client.initialize()
            talk = await begin(client, directory, v1.McpServerHttp(name=SERVER, url=url, headers=[]))
            turn = await talk.ask("Use everything.")
            for name in commands_of(client):
                await talk.ask(f"/{name} text text text")
            print(talk.statuses(), failures_in(turn))
            return 1 if talk.statuses()[SERVER]["state"] != "ready" or failures_in(turn) else 0


def commands_of(client):
    """Return the commands of the server's prompts."""
    updates = [each.update for each in client.updates if isinstance(each.update, v1.AvailableCommandsUpdate)]
    commands = updates[-1].available_commands if updates else []
    return [each.name for each in commands if each.name.startswith(f"{SERVER}:")]


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
