"""A client for the official suite: `python -m tests.conformance.driver URL`.

It uses the server like a session of our agent, with `ServerConnection`. It lists everything, calls every tool, gets
every prompt and reads every resource. The suite names additional calls in `MCP_CONFORMANCE_CONTEXT`. Other arguments
are derived from the schema. It accepts every question of the server.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

import httpx2

from dragoman.errors import McpServerError
from dragoman.mcp.authorisation import ClientIdentity, ConsentResult
from dragoman.mcp.connector import ServerEnvironment
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.server import ServerConnection

CALL_TIMEOUT_S = 20.0

VALUES = {"string": "text", "number": 1.5, "integer": 3, "boolean": True, "array": [], "object": {}, "null": None}


class AcceptingHost:
    """Accepts the questions of a server, with only the default values."""

    def __init__(self, root):
        self._root = str(root)

    def roots(self):
        return [self._root]

    async def elicit(self, server, params):
        if params.get("mode") == "url":
            return {"action": "accept"}
        schema = params["requestedSchema"]
        fields = schema.get("properties", {})
        required = {
            name: value_for(fields[name]) for name in schema.get("required", []) if "default" not in fields[name]
        }
        return {"action": "accept", "content": required}

    async def sample(self, server, params):
        content = {"type": "text", "text": "an answer of the model"}
        return {"role": "assistant", "content": content, "model": "test", "stopReason": "endTurn"}


class PromptAuthoriser:
    """Allows everything immediately, because the suite's server does not require a user."""

    redirect_uri = "http://localhost:3000/callback"

    def check(self, server):
        """Allow every question."""

    @asynccontextmanager
    async def open(self, server):
        yield self

    def __init__(self, context):
        self.identity = ClientIdentity(
            "https://conformance-test.local/client-metadata.json",
            context.get("client_id"),
            context.get("client_secret"),
        )

    async def ask(self, url):
        async with httpx2.AsyncClient() as client:
            answer = await client.get(url)
        back = parse_qs(urlsplit(answer.headers["location"]).query)
        return ConsentResult(*(back.get(name, [None])[0] for name in ("code", "state", "iss")))


def value_for(schema):
    """Return a value that fits the simple schemas of the suite."""
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    return VALUES[kind if isinstance(kind, str) else kind[0]]


def arguments_for(schema, tools):
    """Return the arguments of a call, one value per parameter. `schema` is the first tool's unchanged schema."""
    fields = schema.get("properties", {})
    return {name: tools[0].parameters if name == "schema" else value_for(each) for name, each in fields.items()}


def calls_of(context, tools):
    """Return the calls to make: the ones that the suite names, else one of each tool."""
    named = [(call["name"], call.get("arguments", {})) for call in context.get("toolCalls", [])]
    return named or [(tool.name, arguments_for(tool.parameters, tools)) for tool in tools]


async def use(server, context):
    """Use everything that the server has. One failure does not stop the others."""
    failures = []
    for tool, arguments in calls_of(context, server.tools):
        await attempt(failures, f"tools/call {tool}", server.call(tool, arguments, timeout_s=CALL_TIMEOUT_S))
    for prompt in server.prompts:
        arguments = {argument.name: "text" for argument in prompt.arguments}
        await attempt(
            failures, f"prompts/get {prompt.name}", server.prompt(prompt.name, arguments, timeout_s=CALL_TIMEOUT_S)
        )
    for resource in await server.resources(timeout_s=CALL_TIMEOUT_S):
        await attempt(failures, f"resources/read {resource.uri}", server.read(resource.uri, timeout_s=CALL_TIMEOUT_S))
    return failures


async def attempt(failures, what, doing):
    """Record a failure."""
    try:
        result = await doing
    except McpServerError as failure:
        print(f"{what}: {failure}")
        if "Method not found" not in str(failure):  # some servers of the suite offer items that they do not have
            failures.append(what)
    else:
        print(f"{what}: {result}")


async def main(url):
    """Connect, use the server and disconnect. Return 1 if it cannot be used."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with TemporaryDirectory() as directory:
        environment = ServerEnvironment(directory, supervise=None, authoriser=PromptAuthoriser(context))
        server = ServerConnection(HttpServer("suite", url), environment, AcceptingHost(Path(directory)), lambda _: None)
        server.start()
        try:
            await server.settled()
            if server.state != "ready":
                print(f"not ready: {server.reason}")
                return 1
            print(f"version {server.version}, {len(server.tools)} tools")
            return 1 if await use(server, context) else 0
        finally:
            await server.stop()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
