"""`session/set_title`, `session/archive`, `session/unarchive` and `session/status`, for any agent.

If the agent supports one of the first three, the bridge forwards the request and the agent's answer counts. Otherwise
the bridge stores a label. It does so too if the agent no longer has a session whose journal is here. A title set by the
user stays: a title of an agent that does not support set_title never replaces it.

The bridge answers `session/status` of a known session itself, because it is the agent's only client and a request could
start a process. The status is "open" while the agent has the session, otherwise "saved".
"""

from typing import Any

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.agent_link import CallAnswer
from dragoman.bridge.router.listing import SessionListing
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.sessions import ServedSession, ServedSessions
from dragoman.bridge.viewers import ViewerRequest
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import methods
from dragoman.text import one_line
from dragoman.wire.envelope import fields_of, string_of

MAX_TITLE_CHARS = 200
"""Longer titles are cut, as the protocol allows, because a title is one line of a list."""

_NOT_AT_AGENT = (ErrorCode.METHOD_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND)


class LabelRequests:
    """Serves the requests for titles, the archive and the status of sessions."""

    def __init__(
        self,
        timeout_s: float,
        *,
        host: AgentHost,
        sessions: ServedSessions,
        listing: SessionListing,
    ) -> None:
        self._timeout_s = timeout_s
        self._host = host
        self._sessions = sessions
        self._listing = listing

    async def set_title(self, request: ViewerRequest) -> Reply:
        """Set the title of a session."""
        given = string_of(fields_of(request.params).get("title"))
        title = "" if given is None else one_line(given, MAX_TITLE_CHARS)
        if request.session_id is None or not title:
            path = "params.title" if request.session_id is not None else "params.sessionId"
            problem = f"{path} must be a non-empty string"
            raise RpcError(ErrorCode.INVALID_PARAMS, {"path": path, "problem": problem, "expected": "a text"})
        answer = await self._ask_agent(request) if self._host.support.title else None
        if answer is None:
            return await self._keep_label(request, {"title": title}, title=title)
        if not answer.is_error:
            stored = string_of(answer.result.get("title")) or title
            session = self._sessions.find(request.session_id)
            if session is not None and session.info.title != stored:
                session.set_title(stored)
            await self._sessions.change_label(request.session_id, title=None)  # a label would hide the agent's title
        return answer

    async def archive(self, request: ViewerRequest) -> Reply:
        """Archive a session: stop its work and hide it in lists."""
        answer = await self._ask_agent(request) if self._host.support.archive else None
        if answer is None:
            return await self._keep_label(request, {}, archived=True)
        if not answer.is_error:
            session = self._sessions.find(request.session_id)
            if session is not None:
                session.closed()
            await self._sessions.change_label(request.session_id or "", archived=True)
        return answer

    async def unarchive(self, request: ViewerRequest) -> Reply:
        """Show a session in lists again."""
        answer = await self._ask_agent(request) if self._host.support.archive else None
        if answer is None:
            return await self._keep_label(request, {}, archived=False)
        if not answer.is_error:
            await self._sessions.change_label(request.session_id or "", archived=False)
        return answer

    async def status(self, request: ViewerRequest) -> Reply:
        """Answer `session/status`: whether the agent has the session in memory."""
        session = self._sessions.find(request.session_id)
        if session is not None:
            return {"status": "open" if session.is_at_agent else "saved"}
        if not self._sessions.knows(request.session_id or ""):
            if not request.viewer.read_only and self._host.support.status:
                return await self._sessions.pass_on(request)
            if request.viewer.read_only or not await self._listing.exists(request.session_id or ""):
                raise _unknown(request)
        return {"status": "saved"}

    async def _ask_agent(self, request: ViewerRequest) -> CallAnswer | None:
        """Forward a request to the agent. Return None if only the bridge knows the session."""
        answer = await self._sessions.pass_on(request)
        is_unknown = answer.error is not None and answer.error.code in _NOT_AT_AGENT
        return None if is_unknown and self._sessions.knows(request.session_id or "") else answer

    async def _keep_label(self, request: ViewerRequest, result: dict[str, Any], **label: str | bool | None) -> Reply:
        session_id = request.session_id or ""
        session = self._sessions.find(session_id)
        if not await self._listing.exists(session_id):
            raise _unknown(request)
        if session is not None and label.get("archived"):
            await self._stop(session)
        if await self._sessions.change_label(session_id, **label):
            return result
        problem = "session titles and archive states cannot be saved; see the bridge's log and free space on its disk"
        raise RpcError(ErrorCode.INTERNAL_ERROR, problem)

    async def _stop(self, session: ServedSession) -> None:
        """Cancel the work of a session, and close it at the agent if the agent supports that."""
        session.cancel()
        if self._host.is_ready and session.is_at_agent and self._host.support.close:
            answer = await self._host.ask(methods.SESSION_CLOSE.name, {"sessionId": session.id}, self._timeout_s)
            if answer is not None and not answer.is_error:
                session.closed()


def _unknown(request: ViewerRequest) -> RpcError:
    session_id = request.session_id
    problem = f"there is no session {session_id}; session/list returns the existing ones"
    return RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"sessionId": session_id, "problem": problem})
