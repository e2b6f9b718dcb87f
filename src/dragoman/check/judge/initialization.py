"""Watches initialize and authentication: versions, capabilities, and whether they are kept to."""

from typing import ClassVar

import msgspec

from dragoman.check.conversation import OTHER, ConversationEntry
from dragoman.check.judge.message import SeenMessage, offered, part, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.errors import ErrorCode
from dragoman.protocol import v1
from dragoman.protocol.methods import REQUESTS

LATEST_KNOWN_VERSION = 2
"""The highest version of the protocol that anybody has drawn up."""

BASELINE = ("session/new", "session/prompt")
CLIENT_CAPABILITIES = frozenset(field.encode_name for field in msgspec.structs.fields(v1.ClientCapabilities))


class InitObserver(Observer):
    """Judges the handshake, and whether methods are used and routed as it said."""

    area: ClassVar[str] = "INIT"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._too_new: SeenMessage | None = None
        """An answer to initialize with a version that the client cannot have."""

    @watch("request")
    def see_request(self, message: SeenMessage) -> None:
        if message.sender != "client" or message.method == "initialize":
            return
        if self.timeline.is_whole:
            self._judge_order(message)
        if self._too_new is not None:
            self.fail(
                "ACP-INIT-103",
                f"the client went on with {message.method}, though the agent has version "
                f"{self._too_new.params.get('protocolVersion')}, above its own; expected it to leave",
                self._too_new.entry,
                message.entry,
            )

    def _judge_order(self, message: SeenMessage) -> None:
        self.judge(
            "ACP-INIT-101",
            self.agreement.initialized is not None or message.method not in REQUESTS,
            f"{message.method} came before the answer to initialize; expected the client to wait for it",
            *([self.agreement.initialize.entry] if self.agreement.initialize else []),
            message.entry,
        )

    @watch("request initialize")
    def see_initialize(self, message: SeenMessage) -> None:
        info = part(message.params, "clientInfo")
        self.judge(
            "ACP-INIT-105",
            bool(text(info, "name")) and bool(text(info, "version")),
            "initialize has no clientInfo with name and version",
            message.entry,
        )

    @watch("event exited")
    def see_death(self, message: SeenMessage) -> None:
        asked = self.agreement.initialize
        if asked is None or not asked.fits or self.requests.pending["client"].get(asked.id) is not asked:
            return
        if message.sender == "agent" and self.timeline.is_own_end(message.entry):
            self.fail(
                "ACP-INIT-001",
                f"the agent {message.entry.event} before it answered initialize; expected a version and capabilities",
                asked.entry,
                message.entry,
            )

    @watch("answer initialize")
    def see_initialized(self, message: SeenMessage) -> None:
        request = message.request
        if request is None:
            return
        asked, given = request.params.get("protocolVersion"), message.params.get("protocolVersion")
        if message.kind == "error":
            self._judge_refusal(message, request)
            return
        self.saw("ACP-INIT-001")
        if _has_strange_capability(request):
            self.saw("ACP-INIT-009")
        if given == 1:  # version 2 has another place for it
            info = part(message.params, "agentInfo")
            self.judge(
                "ACP-INIT-005",
                bool(text(info, "name")) and bool(text(info, "version")),
                "the answer to initialize has no agentInfo with name and version",
                message.entry,
            )
        if isinstance(asked, int) and isinstance(given, int):
            self._judge_version(asked, given, request.entry, message)

    def _judge_refusal(self, message: SeenMessage, request: SeenMessage) -> None:
        if not request.fits:
            return
        if _has_strange_capability(request):
            rule, words = "ACP-INIT-009", "initialize with a capability that the protocol does not have"
        else:
            rule, words = "ACP-INIT-001", "initialize"
        self.fail(
            rule,
            f"{words} was answered with the error {message.code}; expected a version and capabilities",
            request.entry,
            message.entry,
        )

    def _judge_version(self, asked: int, given: int, request: ConversationEntry, answer: SeenMessage) -> None:
        if asked > LATEST_KNOWN_VERSION:
            self.judge(
                "ACP-INIT-003",
                given != asked,
                f"the agent took version {asked}, which does not exist; expected the latest that it supports",
                request,
                answer.entry,
            )
        elif asked in self.state.memory.versions or given == asked:
            self.judge(
                "ACP-INIT-004",
                given == asked,
                f"asked for version {asked}, which it supports, the agent answered {given}; expected {asked}",
                request,
                answer.entry,
            )
        if asked == 1 and not (given != 1 and 1 in self.state.memory.versions):
            self.judge(
                "ACP-INIT-010",
                given == 1,
                f"asked for version 1, the agent answered {given}: by the rules of version 1 nothing more is judged",
                request,
                answer.entry,
            )
        if given > asked:
            self._too_new = answer

    @watch("event stdin", "event exited")
    def see_end(self, message: SeenMessage) -> None:
        del message
        if self._too_new is not None:
            self.saw("ACP-INIT-103")
            self._too_new = None

    @watch("answer")
    def see_answer(self, message: SeenMessage) -> None:
        request = message.request
        if request is None or self.agreement.initialized is None:
            return
        if message.sender == "agent":
            self._judge_agent_route(message, request)
        else:
            self._judge_client_route(message, request)

    def _judge_agent_route(self, answer: SeenMessage, request: SeenMessage) -> None:
        method = REQUESTS.get(request.method)
        if method is None:
            return
        missing = answer.code == ErrorCode.METHOD_NOT_FOUND
        detail = f"{request.method} was answered with -32601, method not found"
        if request.method in BASELINE:
            self.judge(
                "ACP-INIT-007", not missing, f"{detail}; expected every agent to have it", request.entry, answer.entry
            )
        elif self._is_offered(request, method.capability):
            self.judge(
                "ACP-INIT-006",
                not missing,
                f"{detail}; expected an advertised method to exist",
                request.entry,
                answer.entry,
            )
        elif method.capability is not None and method.stable:
            self.judge(
                "ACP-INIT-008",
                answer.kind == "error",
                f"{request.method} was answered with a result; expected it to be advertised or refused",
                request.entry,
                answer.entry,
            )

    def _is_offered(self, request: SeenMessage, capability: str | None) -> bool:
        session = self.state.session(request)
        if request.method == "session/set_mode":
            return session is not None and bool(session.modes)
        if request.method == "session/set_config_option":
            return session is not None and bool(session.options)
        if capability is None:
            return False
        side = OTHER[request.sender]
        return offered(self.agreement.capabilities[side], capability.partition(".")[2])

    def _judge_client_route(self, answer: SeenMessage, request: SeenMessage) -> None:
        method = REQUESTS.get(request.method)
        if method is None:
            return
        missing = answer.code == ErrorCode.METHOD_NOT_FOUND
        detail = f"{request.method} was answered with -32601, method not found"
        if request.method == "session/request_permission":
            if not request.fits:
                return
            self.judge(
                "ACP-INIT-107", not missing, f"{detail}; expected every client to have it", request.entry, answer.entry
            )
        elif self._is_offered(request, method.capability):
            self.judge(
                "ACP-INIT-106",
                not missing,
                f"{detail}; expected an advertised method to exist",
                request.entry,
                answer.entry,
            )


def _has_strange_capability(request: SeenMessage) -> bool:
    return not part(request.params, "clientCapabilities").keys() <= CLIENT_CAPABILITIES


class AuthObserver(Observer):
    """Judges authentication."""

    area: ClassVar[str] = "AUTH"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._login: ConversationEntry | None = None

    @watch("result initialize")
    def see_initialized(self, message: SeenMessage) -> None:
        methods = parts(message.params, "authMethods")
        if not methods:
            return
        ids = [text(each, "id") for each in methods]
        self.judge("ACP-AUTH-003", len(set(ids)) == len(ids), f"auth methods share an id: {ids}", message.entry)
        able = offered(self.agreement.capabilities["client"], "auth.terminal")
        terminal = [text(each, "id") for each in methods if text(each, "type") == "terminal"]
        self.judge(
            "ACP-AUTH-001",
            able or not terminal,
            f"the terminal method {terminal} is offered to a client that did not advertise auth.terminal",
            *([message.request.entry] if message.request else []),
            message.entry,
        )

    @watch("request authenticate")
    def see_authenticate(self, message: SeenMessage) -> None:
        if self.agreement.initialized is None:
            return
        usable = [text(each, "id") for each in self.agreement.auth_methods if text(each, "type") != "terminal"]
        self.judge(
            "ACP-AUTH-101",
            text(message.params, "methodId") in usable,
            f"authenticate with {text(message.params, 'methodId')!r}; expected one of {usable}",
            self.agreement.initialized.entry,
            message.entry,
        )

    @watch("request logout")
    def see_logout(self, message: SeenMessage) -> None:
        self.judge(
            "ACP-AUTH-102",
            self.agreement.agent_offers("auth.logout"),
            "logout was called, which the agent did not advertise",
            *([self.agreement.initialized.entry] if self.agreement.initialized else []),
            message.entry,
        )

    @watch("answer authenticate")
    def see_authenticated(self, message: SeenMessage) -> None:
        request = message.request
        if request is None or self.agreement.initialized is None:
            return
        if message.kind == "result":
            self._login = message.entry
        ids = [text(each, "id") for each in self.agreement.auth_methods]
        asked = text(request.params, "methodId")
        if asked is not None and asked not in ids:
            self._login = None
            self.judge(
                "ACP-AUTH-005",
                message.kind == "error",
                f"authenticate with {asked!r}, which was not advertised, succeeded; expected an error",
                request.entry,
                message.entry,
            )

    @watch("result logout")
    def see_logged_out(self, message: SeenMessage) -> None:
        del message
        self._login = None

    @watch("answer session/new")
    def see_session(self, message: SeenMessage) -> None:
        needs_login = message.code == ErrorCode.AUTH_REQUIRED
        if self._login is not None:
            self.judge(
                "ACP-AUTH-002",
                not needs_login,
                "session/new asks for authentication after a successful authenticate",
                self._login,
                message.entry,
            )
        if needs_login:
            self.judge(
                "ACP-AUTH-004",
                bool(self.agreement.auth_methods),
                "session/new asks for authentication, but authMethods is empty; expected a way to log in",
                *([self.agreement.initialized.entry] if self.agreement.initialized else []),
                message.entry,
            )
