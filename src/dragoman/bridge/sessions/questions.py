"""Requests of the agent: which viewer is asked, and which answer counts.

A question (a permission, an elicitation) goes to every viewer that can answer it, and the first answer settles it. Any
other request (a file, a terminal, an extension) goes to one viewer, and to another if that one leaves first.

A request about a terminal or an MCP server that one viewer has goes to that viewer (`ownership`).
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.envelope import make_notification, rename_terminals
from dragoman.bridge.sessions.agent_request import PERMISSION, AgentRequest, SettledBy
from dragoman.bridge.sessions.ownership import CREATE_TERMINAL, MCP_MESSAGE, Ownership
from dragoman.bridge.sessions.session import ServedSession
from dragoman.bridge.settings import AgentLimits
from dragoman.bridge.translation import V2, answer_to_v1, question_for
from dragoman.bridge.viewers import Delivery, Viewer, ViewerRequest
from dragoman.errors import ErrorCode
from dragoman.protocol import methods
from dragoman.wire import Malformed, Message, parse
from dragoman.wire.envelope import decode_fields, encode, fields_of, make_error, make_result, with_id

MAX_HELD = 64
"""Requests for servers of viewers that are away, at a time; more are refused at once."""


class Questions:
    """All requests of the agent that are not answered."""

    def __init__(
        self,
        delivery: Delivery,
        host: AgentHost,
        ownership: Ownership,
        limits: AgentLimits,
        node_name: str | None = None,
    ) -> None:
        """`node_name` makes the ids of questions unique, if several nodes may ask one viewer."""
        self._delivery = delivery
        self._host = host
        self._ownership = ownership
        self._limits = limits
        self._node_name = node_name
        self._open: dict[AgentRequest, None] = {}
        self._asked: dict[Viewer, dict[bytes, AgentRequest]] = {}
        """Requests to each viewer that it has not answered, by the ids that they have there."""
        self._last_id = 0
        self._activity: dict[tuple[Viewer, str], int] = {}
        """When each viewer last prompted a session: the latest is asked first."""
        self._prompts = 0

    def __len__(self) -> int:
        return len(self._open)

    def of_session(self, session: ServedSession) -> list[AgentRequest]:
        """Return the open questions of a session."""
        return [request for request in self._open if request.session is session and request.is_question]

    def askable(self, session: ServedSession) -> list[Viewer]:
        """Return the viewers of a session that may answer questions. The last to prompt it is first."""
        viewers = [viewer for viewer in session.subscriptions if not viewer.read_only]
        return sorted(viewers, key=lambda viewer: -self._activity.get((viewer, session.id), 0))

    def receive(self, request: AgentRequest) -> None:
        """Pass a request of the agent to the viewers that can answer it."""
        self._open[request] = None
        if not request.is_question:
            self._ask_next(request)
            return
        if request.session is not None:
            self._record(request, {"event": "asked", "method": request.method})
            request.session.count_question(1)
        for viewer in self._able(request):
            self._ask(request, viewer)
        self._watch(request)

    def record_activity(self, viewer: Viewer, session_id: str) -> None:
        """Note that a viewer prompts a session."""
        self._prompts += 1
        self._activity[viewer, session_id] = self._prompts

    def register_servers(self, request: ViewerRequest, session: ServedSession | None) -> None:
        """Register the MCP servers that a viewer offers to a session, and send the requests that waited for them."""
        self._ownership.servers.register_servers(request, None if session is None else session.params.get("mcpServers"))
        for held in [held for held in self._open if held.method == MCP_MESSAGE and not held.asked]:
            self._ask_next(held)

    def to_agent(self, line: bytes, params: Raw, viewer: Viewer) -> bytes | None:
        """Return a viewer's message about one of its MCP servers, with the agent's id of the server.

        Return None if the viewer has no such server.
        """
        return self._ownership.servers.to_agent(line, params, viewer)

    def viewer_joined(self, session: ServedSession, viewer: Viewer) -> None:
        """Ask a viewer the open questions of a session."""
        for request in self._unasked(session, viewer):
            self._ask(request, viewer)
            request.stop_timer()

    def count_for(self, session: ServedSession, viewer: Viewer) -> int:
        """Return the number of open questions that a viewer will be asked when it joins a session."""
        return len(self._unasked(session, viewer))

    def viewer_left(self, viewer: Viewer, session: ServedSession | None = None) -> None:
        """Ask others the questions of a viewer that left a session, or all sessions."""
        if session is None:
            self._ownership.viewer_left(
                viewer
            )  # first, so that no request about its servers and terminals is sent to it again
        for id_, request in list(self._asked.get(viewer, {}).items()):
            if session is not None and (request.session is not session or self._owns(viewer, request)):
                continue
            del self._asked[viewer][id_]
            request.asked.pop(viewer, None)
            if request.method == MCP_MESSAGE:
                problem = "the viewer with this server disconnected before it answered, so the result is unknown"
                self._settle(request, make_error(request.agent_id, ErrorCode.MCP_BACKEND_FAILED, problem), "timeout")
            elif not request.is_question and not request.is_settled:
                self._ask_next(request)
        if session is None:
            self._asked.pop(viewer, None)
            self._activity = {key: at for key, at in self._activity.items() if key[0] is not viewer}
        else:
            self._activity.pop((viewer, session.id), None)
        for request in list(self._open):
            if request.is_question:
                self._watch(request)

    def answered(self, viewer: Viewer, message: Message, line: bytes) -> None:
        """Handle a viewer's answer. A late answer is dropped."""
        id_ = b"" if message.id is UNSET else bytes(message.id)
        request = self._asked.get(viewer, {}).pop(id_, None)
        if request is None or request.asked.pop(viewer, None) is None:
            return
        answer = with_id(line, request.agent_id)
        if viewer.version == V2 and viewer.translator is not None and message.result is not UNSET:
            answer = make_result(request.agent_id, answer_to_v1(request.method, message.result))
        if message.error is UNSET or not request.is_question:
            self._settle(request, answer, "viewer", viewer, id_)
            return
        # An error of one viewer settles a question only once every viewer that was asked has answered so.
        request.refused_by.add(viewer)
        if not request.asked:
            self._settle(request, answer, "viewer")

    def asked_of(self, viewer: Viewer, id_: bytes) -> AgentRequest | None:
        """Return the open request that a viewer was asked under an id."""
        return self._asked.get(viewer, {}).get(id_)

    def answer_by_link(self, request: AgentRequest, outcome: dict[str, object]) -> None:
        """Handle the answer of a user who opened an approval link. A late answer is dropped."""
        self._settle(request, make_result(request.agent_id, {"outcome": outcome}), "link")

    def answered_badly(self, viewer: Viewer, id_: bytes, problem: str) -> None:
        """Settle a request whose answer cannot be read, for example because it is too long."""
        request = self._asked.get(viewer, {}).get(id_)
        if request is None:
            return
        code = ErrorCode.MCP_BACKEND_FAILED if request.method == MCP_MESSAGE else ErrorCode.INTERNAL_ERROR
        error = make_error(id_, code, f"the answer was dropped, because {problem}")
        message = parse(error)
        if not isinstance(message, Malformed):
            self.answered(viewer, message, error)

    def wait_for(self, viewer: Viewer | None, session: ServedSession | None) -> bool:
        """Return whether the agent waits for a user: one on this session, or this viewer about its own request."""
        return any(
            (viewer is not None and request.only is viewer) or (session is not None and request.session is session)
            for request in self._open
        )

    def cancel_session(self, session: ServedSession) -> None:
        """Settle all questions of a session whose turn was cancelled."""
        for request in self.of_session(session):
            self._settle(request, request.cancellation(), "cancel")

    def cancel(self, agent_id: bytes) -> None:
        """Withdraw a request that the agent has cancelled."""
        for request in [request for request in self._open if request.agent_id == agent_id]:
            if request.is_question or not request.asked:
                problem = "the agent withdrew its request"
                self._settle(request, make_error(agent_id, ErrorCode.REQUEST_CANCELLED, problem), "agent")
                continue
            for viewer, id_ in list(request.asked.items()):
                viewer.send(_cancel_request(id_), request.subscription_of(viewer))

    def agent_ended(self) -> None:
        """Settle everything: the agent that asked is gone."""
        for request in list(self._open):
            self._settle(request, None, "agent")
        self._ownership.agent_ended()

    def forget_session(self, session: ServedSession) -> None:
        """Settle all requests of a session that is gone."""
        self._ownership.forget_session(session.id)
        problem = "the session was closed before anyone answered"
        for request in [request for request in self._open if request.session is session]:
            refusal = make_error(request.agent_id, ErrorCode.REQUEST_CANCELLED, problem)
            self._settle(request, request.cancellation() if request.is_question else refusal, "agent")

    def _unasked(self, session: ServedSession, viewer: Viewer) -> list[AgentRequest]:
        """Return the open questions of a session that a viewer can answer and was not asked."""
        return [
            request
            for request in self.of_session(session)
            if viewer not in request.asked and viewer not in request.refused_by and _may_answer(request, viewer)
        ]

    def _able(self, request: AgentRequest) -> list[Viewer]:
        """Return the viewers that can answer a request. The last to prompt its session is first."""
        session = request.session
        if request.only is not None:
            viewers = [] if request.only.closed.is_set() else [request.only]
        elif session is None:
            viewers = list(self._delivery.viewers.values())
        else:
            viewers = sorted(session.subscriptions, key=lambda viewer: -self._activity.get((viewer, session.id), 0))
        return [viewer for viewer in viewers if viewer not in request.refused_by and _may_answer(request, viewer)]

    def _ask(self, request: AgentRequest, viewer: Viewer) -> None:
        """Send a request to a viewer, under an id of its own."""
        self._last_id += 1
        id_ = (
            b"%d" % self._last_id if self._node_name is None else b'"%b-%d"' % (self._node_name.encode(), self._last_id)
        )
        request.asked[viewer] = id_
        self._asked.setdefault(viewer, {})[id_] = request
        names: Mapping[str, str] | None = None
        if request.session is not None:
            names = viewer.terminal_names.get(request.session.id)
        line = rename_terminals(request.line, names) if names else request.line
        if request.method == MCP_MESSAGE:
            line = self._ownership.servers.to_viewer(line, request.params, viewer)
        subscription = request.subscription_of(viewer)
        if viewer.translator is not None and request.is_question:
            stream = None if subscription is None else subscription.edge.translator
            fields = decode_fields(line)
            made = question_for(viewer.version, request.method, fields["params"], stream, lambda: _name_call(request))
            line = encode({**fields, "params": made})
        viewer.send(with_id(line, id_), subscription)

    def _ask_next(self, request: AgentRequest) -> None:
        """Send a request to the one viewer that has its subject, or to the first that could answer."""
        if request.method == MCP_MESSAGE:
            self._ask_for_server(request)
            return
        able, lacks = self._able(request), "could answer"
        if _is_about_terminal(request):
            owner = self._ownership.terminal_owner(request.params)
            able, lacks = [] if owner is None else [owner], "has that terminal"
        if able:
            self._ask(request, able[0])
            return
        problem = f"{request.method}: no viewer of this session {lacks}"
        self._settle(request, make_error(request.agent_id, ErrorCode.METHOD_NOT_FOUND, problem), "timeout")

    def _ask_for_server(self, request: AgentRequest) -> None:
        """Send a request to the viewer that has the server, or hold it for a while if that viewer is away."""
        servers = self._ownership.servers
        viewer = servers.owner(request.params)
        if viewer is not None:
            request.stop_timer()
            self._ask(request, viewer)
        elif request.timer is not None:
            return
        elif servers.has_left(request.params) and self._held() < MAX_HELD:
            loop = asyncio.get_running_loop()
            request.timer = loop.call_later(self._limits.server_return_s, self._miss_server, request)
        else:
            self._miss_server(request)

    def _held(self) -> int:
        return sum(request.method == MCP_MESSAGE and not request.asked for request in self._open)

    def _miss_server(self, request: AgentRequest) -> None:
        problem = "no connected viewer has this server"
        self._settle(request, make_error(request.agent_id, ErrorCode.MCP_SERVER_UNAVAILABLE, problem), "timeout")

    def _owns(self, viewer: Viewer, request: AgentRequest) -> bool:
        """Return whether a request is about a terminal of this viewer, so that no other could answer it."""
        return request.method.startswith("terminal/") and self._ownership.terminal_owner(request.params) is viewer

    def _watch(self, request: AgentRequest) -> None:
        """Run the timer while no viewer could answer."""
        if request.is_settled or self._able(request):
            request.stop_timer()
        elif request.timer is None:
            loop = asyncio.get_running_loop()
            request.timer = loop.call_later(self._limits.permission_timeout_s, self._time_out, request)

    def _time_out(self, request: AgentRequest) -> None:
        self._settle(request, request.refusal(), "timeout")

    def _settle(
        self,
        request: AgentRequest,
        answer: bytes | None,
        by: SettledBy,
        viewer: Viewer | None = None,
        viewer_id: bytes = b"",
    ) -> None:
        """Answer the agent, and notify the viewers that were asked."""
        if request.is_settled:
            return
        request.settled_by = by
        request.stop_timer()
        self._open.pop(request, None)
        # The agent receives the answer first. A new terminal gets an id that is unique at the agent.
        if answer is not None:
            if viewer is not None and not request.is_question:
                answer = self._ownership.record_answer(request.method, request.params, answer, viewer)
            self._host.write(answer)
        # Viewers with our extensions receive the outcome. For the others the request is cancelled.
        result = request.result = None if answer is None else _outcome_of(answer)
        if viewer is not None and viewer.knows_extensions and request.is_question:
            _send_settled(request, viewer, viewer_id, result, "you")
        for other, id_ in request.asked.items():
            self._asked.get(other, {}).pop(id_, None)
            if other.knows_extensions and request.is_question:
                _send_settled(request, other, id_, result, by)
            else:
                other.send(_cancel_request(id_), request.subscription_of(other))
        request.asked.clear()
        if request.session is not None and request.is_question:
            self._record(request, {"event": "settled", "by": by, "result": result})
            request.session.count_question(-1)
            self._delivery.sync_soon(request.session.history)

    def _record(self, request: AgentRequest, record: dict[str, object]) -> None:
        if request.session is not None and request.method == PERMISSION:
            params = fields_of(request.params)
            about = fields_of(params.get("subject", UNSET)) or params  # version 2, or version 1
            call = fields_of(about.get("toolCall", UNSET)).get("toolCallId") or about.get("toolCallId")
            request.session.history.record("permission", encode({**record, "toolCallId": call}))


def _name_call(request: AgentRequest) -> str:
    """Return the id of the tool call that shows a question about no tool call. It is the same for all viewers."""
    return f"question-{request.agent_id.decode()}"


def _may_answer(request: AgentRequest, viewer: Viewer) -> bool:
    capabilities = viewer.capabilities
    return capabilities is not None and not viewer.read_only and capabilities.can(request.method, request.params)


def _is_about_terminal(request: AgentRequest) -> bool:
    return request.method.startswith("terminal/") and request.method != CREATE_TERMINAL


def _send_settled(request: AgentRequest, viewer: Viewer, id_: bytes, result: Raw | None, by: str) -> None:
    session_id = request.session.id if request.session else None
    params = {"sessionId": session_id, "requestId": Raw(id_), "result": result, "by": by}
    viewer.send(make_notification("_dragoman/settled", params), request.subscription_of(viewer))


def _cancel_request(id_: bytes) -> bytes:
    return make_notification(methods.CANCEL_REQUEST.name, {"requestId": Raw(id_)})


def _outcome_of(answer: bytes) -> Any:
    """Return the result of an answer, for viewers that did not send it. None for an error."""
    result = fields_of(Raw(answer)).get("result", UNSET)
    return None if result is UNSET else result
