"""Sessions with MCP servers, driven by a script, and everything visible of them."""

import asyncio
import json
from contextlib import asynccontextmanager

from dragoman.assistant.models.script import parse_script
from dragoman.protocol import v1
from dragoman.protocol.methods import (
    SESSION_CLOSE,
    SESSION_LOAD,
    SESSION_NEW,
    SESSION_REQUEST_PERMISSION,
    SESSION_RESUME,
)
from dragoman.protocol.notice import notice_text
from tests.assistant.running import running_agent
from tests.mcp.servers.commands import scripted

SERVERS = "dragoman/mcp"


class WatchedModel:
    """Replies from a script and records the requests."""

    def __init__(self, *replies):
        self._script = parse_script(json.dumps(replies), "test.yaml")
        self.requests = []

    def __getattr__(self, name):
        return getattr(self._script, name)

    def start(self):
        return WatchedConversation(self._script.start(), self.requests)

    def tools(self):
        """Return the names of the servers' tools in each request."""
        return [[tool.name for tool in request.tools if "__" in tool.name] for request, _ in self.requests]

    def results(self):
        """Return the tool results in the last request."""
        return self.requests[-1][1][-1].results


class WatchedConversation:
    def __init__(self, inner, requests):
        self._inner = inner
        self._requests = requests

    def reply(self, request):
        self._requests.append((request, list(request.messages)))
        return self._inner.reply(request)


def text(words="done"):
    return [{"text": words}]


def call(name, **arguments):
    return [{"tool": {"name": name, "arguments": arguments}}]


def stdio(name="one", *, env=None, meta=None, **options):
    """Return a scripted server in the client's form."""
    command, *args = scripted(**options)
    variables = [v1.EnvVariable(name=key, value=value) for key, value in (env or {}).items()]
    return v1.McpServerStdio(name=name, command=command, args=args, env=variables, meta=meta)


def in_file(command, **settings):
    """Return a scripted server in the agent file's form."""
    return {"command": command[0], "args": command[1:], **settings}


def write_agent_file(home, servers=None, **keys):
    home.mkdir(exist_ok=True)
    (home / "dragoman.yaml").write_text(json.dumps({"mcpServers": servers or {}, **keys}))


class Turn:
    """The outcome of a prompt."""

    def __init__(self, stop, updates):
        self.stop = stop
        self.updates = updates
        self.text = "".join(
            update.content.text
            for update in updates
            if isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextContent)
        )
        self.notices = [notice_text(update) for update in updates if isinstance(update, v1.Notice)]
        self.calls = merged(updates)

    @property
    def call(self):
        [call] = self.calls
        return call


class Talk:
    """A session as its client sees it."""

    def __init__(self, client, session_id, meta, cwd):
        self.client = client
        self.id = session_id
        self.meta = meta or {}
        self.cwd = str(cwd)
        self._position = len(client.updates)

    async def ask(self, prompt="go"):
        """Send a prompt and return the turn."""
        begin = len(self.client.updates)
        response = await self.client.prompt(self.id, prompt)
        updates = [each.update for each in self.client.updates[begin:] if each.session_id == self.id]
        return Turn(response.stop_reason, updates)

    def news(self):
        """Return the servers' states at each change that the client was notified of."""
        return [
            each.update.meta[SERVERS]
            for each in self.client.updates[self._position :]
            if each.session_id == self.id and isinstance(each.update, v1.SessionInfoUpdate) and each.update.meta
        ]

    def statuses(self):
        """Return the current states of the servers by name."""
        return {status["name"]: status for status in [self.meta.get(SERVERS, []), *self.news()][-1]}

    async def until(self, state="ready", *names, **fields):
        """Wait until these servers, or all, have this state and these other fields."""

        def arrived(_):
            now = self.statuses()
            wanted = [now.get(name, {}) for name in names] or list(now.values())
            return all({"state": state, **fields}.items() <= status.items() for status in wanted)

        await self.client.wait_for(arrived)

    async def load(self, *servers, **options):
        request = v1.LoadSessionRequest(session_id=self.id, cwd=self.cwd, mcp_servers=list(servers), **options)
        self.apply_meta((await self.client.connection.call(SESSION_LOAD, request)).meta)

    async def resume(self, *servers, **options):
        request = v1.ResumeSessionRequest(session_id=self.id, cwd=self.cwd, mcp_servers=list(servers), **options)
        self.apply_meta((await self.client.connection.call(SESSION_RESUME, request)).meta)

    async def close(self):
        await self.client.connection.call(SESSION_CLOSE, v1.CloseSessionRequest(session_id=self.id))

    def apply_meta(self, meta):
        """Continue from the status in an answer."""
        self.meta, self._position = meta or {}, len(self.client.updates)


async def begin(client, cwd, *servers, **options):
    """Open a session with servers."""
    request = v1.NewSessionRequest(cwd=str(cwd), mcp_servers=list(servers), **options)
    response = await client.connection.call(SESSION_NEW, request)
    return Talk(client, response.session_id, response.meta, cwd)


@asynccontextmanager
async def connected(place, *replies, decide=lambda _: "allow", **options):
    """Yield an initialized client of our agent, and the model."""
    model = WatchedModel(*(replies or [text()]))
    async with running_agent(place[1], model=model, decide=decide, **options) as client:
        await client.initialize()
        yield client, model


@asynccontextmanager
async def talking(place, *replies, servers=(), wait=True, **options):
    """Yield a session and its model. By default its servers are ready."""
    async with connected(place, *replies, **options) as (client, model):
        talk = await begin(client, place[0], *servers)
        if wait:
            await talk.until()
        yield talk, model


class Question:
    """Holds back the answers to permission requests until `answered` is set."""

    def __init__(self, client):
        self.asked = asyncio.Event()
        self.answered = asyncio.Event()
        client.routes.on_request(SESSION_REQUEST_PERMISSION, self._answer)

    async def _answer(self, params):
        self.asked.set()
        await self.answered.wait()
        return v1.RequestPermissionResponse(outcome=v1.SelectedPermissionOutcome(option_id="allow_once"))


def merged(updates):
    """Return the tool calls of updates, each with its last fields and all its contents."""
    calls = {}
    for update in updates:
        if isinstance(update, v1.ToolCall | v1.ToolCallProgress):
            fields = {name: value for name in update.__struct_fields__ if (value := getattr(update, name)) is not None}
            known = calls.setdefault(update.tool_call_id, {"shown": []})
            known.update(fields)
            known["shown"] += [each.content.text for each in fields.get("content", []) if hasattr(each.content, "text")]
    return list(calls.values())


def said(call):
    """Return the final text of a call."""
    return "\n".join(each.content.text for each in call["content"] if isinstance(each.content, v1.TextContent))


def surroundings(call):
    """Return pid, cwd and variables of the server that answered."""
    return json.loads(said(call))
