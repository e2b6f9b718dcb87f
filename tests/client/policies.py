"""Session directories and permission questions for the tests of policies, files and terminals."""

import asyncio
from contextlib import asynccontextmanager

from msgspec import Raw

from dragoman.client.permission.action import find_action
from dragoman.client.permission.policy import PermissionQuestion
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.wire import IncomingRequest

OPTIONS = (
    v1.PermissionOption(option_id="always", name="Always", kind="allow_always"),
    v1.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    v1.PermissionOption(option_id="never", name="Never", kind="reject_always"),
    v1.PermissionOption(option_id="no", name="No", kind="reject_once"),
)


def diff(path, new_text="new\n"):
    return v1.Diff(path=str(path), new_text=new_text)


def located(*paths):
    return tuple(v1.ToolCallLocation(path=str(path)) for path in paths)


def question_about(action, *, cwd="/project", title="", options=OPTIONS, content=()):
    return PermissionQuestion("s", ToolCallState("c", title=title, content=content), options, str(cwd), action)


def question_of(root, *, options=OPTIONS, **call):
    state = ToolCallState("c", **call)
    return PermissionQuestion("s", state, options, str(root), find_action(state, [str(root)]))


async def verdict(policy, question):
    return (await policy.decide(question)).verdict


def request_of(params, method=""):
    """Return the request with these params."""
    return IncomingRequest(method, Raw(encode(params)), b"1")


class Asker:
    """Asks a policy and records the questions."""

    def __init__(self, policy):
        self.policy = policy
        self.questions = []

    async def __call__(self, question):
        self.questions.append(question)
        return await self.policy.decide(question)


def only(session_id, boundary):
    """Return a function that knows the boundary of one session only."""

    def boundary_of(wanted):
        if wanted != session_id:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"problem": "no such session is open"})
        return boundary

    return boundary_of


@asynccontextmanager
async def soon():
    async with asyncio.timeout(30):
        yield
