"""Watches initialize and authentication: versions, capabilities, and whether they are kept to."""

from typing import ClassVar

import msgspec

from dragoman.check.conversation import OTHER, ConversationEntry
from dragoman.check.judge.message import SeenMessage, items, offered, part, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.errors import ErrorCode
from dragoman.protocol import v1

UNSUPPORTED_VERSION = -32022
PER_ITEM = frozenset({"tool_call/cancel", "terminal/cancel", "session/set_config_option"})
"""Methods of version 2 that a tool call, a terminal or a session offers, not the agent as such."""

LATEST_KNOWN_VERSION = 2
"""The highest version of the protocol that anybody has drawn up."""

CLIENT_CAPABILITIES = frozenset(field.encode_name for field in msgspec.structs.fields(v1.ClientCapabilities))
"""Capabilities of clients; those of version 2 are among them."""


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
            self.agreement.initialized is not None or message.method not in self.agreement.dialect.requests,
            f"{message.method} came before the answer to initialize; expected the client to wait for it",
            *([self.agreement.initialize.entry] if self.agreement.initialize else []),
            message.entry,
        )

    @watch("request initialize")
    def see_initialize(self, message: SeenMessage) -> None:
        if not self.state.is_v2:
            self._judge_client_info(message)

    def _judge_client_info(self, message: SeenMessage) -> None:
        info = part(message.params, "clientInfo") or part(message.params, "info")  # as a client of version 2 says it
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
        if asked != given and given == 1:  # asked for version 2, and given version 1
            self._judge_client_info(request)
        if self._has_strange_capability(request):
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

    def _has_strange_capability(self, request: SeenMessage) -> bool:
        return not part(request.params, self.agreement.dialect.client_capabilities).keys() <= CLIENT_CAPABILITIES

    def _judge_refusal(self, message: SeenMessage, request: SeenMessage) -> None:
        asked = request.params.get("protocolVersion")
        if not request.fits or not isinstance(asked, int):
            return
        if message.code == UNSUPPORTED_VERSION:
            data = part(message.params, "data")
            self.judge(
                "ACP-INIT-012",
                data.get("requested") == asked and bool(items(data, "supported")),
                f"the refusal of version {asked} has the data {data}; expected requested, and supported with versions",
                request.entry,
                message.entry,
            )
        below = [version for version in self.state.memory.versions if version <= asked]
        if self.agreement.dialect.version != 1 and not below:
            if asked < 1 and message.code != UNSUPPORTED_VERSION:
                detail = f"version {asked} was refused with {message.code}; expected {UNSUPPORTED_VERSION}"
                self.fail("ACP-INIT-012", detail, request.entry, message.entry)
            if asked < 1 or message.code == UNSUPPORTED_VERSION:
                return
        if self._has_strange_capability(request):
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
        self.judge(
            "ACP-INIT-012",
            given <= asked,
            f"asked for version {asked}, the agent answered {given}, which is above it; expected the highest that is"
            f" not, or the error {UNSUPPORTED_VERSION}",
            request,
            answer.entry,
        )

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
        method = self.agreement.dialect.requests.get(request.method)
        if method is None:
            return
        missing = answer.code == ErrorCode.METHOD_NOT_FOUND
        detail = f"{request.method} was answered with -32601, method not found"
        dialect = self.agreement.dialect
        is_baseline = request.method in dialect.baseline
        if is_baseline and (dialect.version == 1 or self.agreement.agent_offers("session")):
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
        elif method.capability is not None and method.stable and request.method not in PER_ITEM:
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
        if request.method in ("auth/login", "auth/logout"):
            return bool(self.agreement.auth_methods)
        if request.method in ("tool_call/cancel", "terminal/cancel"):
            return False  # each call and each terminal says whether it can be cancelled: ACP-TOOL-015 and ACP-TERM-011
        if capability is None:
            return False
        side = OTHER[request.sender]
        path = capability.removeprefix(f"{side}.")  # version 2 says whose capabilities they are
        return offered(self.agreement.capabilities[side], path.partition(".")[2])

    def _judge_client_route(self, answer: SeenMessage, request: SeenMessage) -> None:
        method = self.agreement.dialect.requests.get(request.method)
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
        name = self.agreement.dialect.method_id
        ids = [each for each in (text(method, name) for method in methods) if each is not None]
        self.judge("ACP-AUTH-003", len(set(ids)) == len(ids), f"auth methods share an id: {ids}", message.entry)
        able = offered(self.agreement.capabilities["client"], "auth.terminal")
        terminal = [text(each, name) for each in methods if text(each, "type") == "terminal"]
        self.judge(
            "ACP-AUTH-001",
            able or not terminal,
            f"the terminal method {terminal} is offered to a client that did not advertise auth.terminal",
            *([message.request.entry] if message.request else []),
            message.entry,
        )

    @watch("request authenticate", "request auth/login")
    def see_authenticate(self, message: SeenMessage) -> None:
        if self.agreement.initialized is None:
            return
        name = self.agreement.dialect.method_id
        usable = [text(each, name) for each in self.agreement.auth_methods if text(each, "type") != "terminal"]
        self.judge(
            "ACP-AUTH-101",
            text(message.params, "methodId") in usable,
            f"{message.method} with {text(message.params, 'methodId')!r}; expected one of {usable}",
            self.agreement.initialized.entry,
            message.entry,
        )

    @watch("request logout", "request auth/logout")
    def see_logout(self, message: SeenMessage) -> None:
        self.judge(
            "ACP-AUTH-102",
            self.agreement.agent_offers("auth.logout")
            if message.method == "logout"
            else bool(self.agreement.auth_methods),
            f"{message.method} was called, which the agent did not advertise",
            *([self.agreement.initialized.entry] if self.agreement.initialized else []),
            message.entry,
        )

    @watch("answer authenticate", "answer auth/login")
    def see_authenticated(self, message: SeenMessage) -> None:
        request = message.request
        if request is None or self.agreement.initialized is None:
            return
        if message.kind == "result":
            self._login = message.entry
        ids = [text(each, self.agreement.dialect.method_id) for each in self.agreement.auth_methods]
        asked = text(request.params, "methodId")
        if asked is not None and asked not in ids:
            self._login = None
            self.judge(
                "ACP-AUTH-005",
                message.kind == "error",
                f"{request.method} with {asked!r}, which was not advertised, succeeded; expected an error",
                request.entry,
                message.entry,
            )

    @watch("result logout", "result auth/logout")
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
                "session/new asks for authentication after a successful login",
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
