"""Rules about initialize and authentication: versions, capabilities, and whether both sides follow them."""

from typing import ClassVar

import msgspec

from dragoman.check.conversation import OTHER, ConversationEntry
from dragoman.check.judge.dialect import Dialect, dialect_of
from dragoman.check.judge.message import SeenMessage, items, offered, part, parts, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED
from dragoman.errors import ErrorCode
from dragoman.protocol import v1

PER_ITEM = frozenset({"tool_call/cancel", "terminal/cancel", "session/set_config_option"})
"""Methods of version 2 that a tool call, a terminal or a session offers, instead of the agent."""

LATEST_KNOWN_VERSION = 2
"""The highest existing version of the protocol."""

CLIENT_CAPABILITIES = frozenset(field.encode_name for field in msgspec.structs.fields(v1.ClientCapabilities))
"""Capabilities of clients, including those of version 2."""


class InitObserver(Observer):
    """Judges the handshake, and whether methods are used and routed accordingly."""

    area: ClassVar[str] = "INIT"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._too_new: SeenMessage | None = None
        """A response to initialize with a version that the client cannot support."""
        self._is_named = True
        """Whether the agent named its capabilities as the version requires."""

    @watch("request")
    def on_request(self, message: SeenMessage) -> None:
        if message.sender != "client" or message.method == "initialize":
            return
        if self.timeline.is_whole:
            self._judge_order(message)
        if self._too_new is not None:
            self.fail(
                "ACP-INIT-103",
                f"the client continued with {message.method}, though the agent answered with version "
                f"{self._too_new.params.get('protocolVersion')}, which the client does not know; expected it to "
                "disconnect",
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
    def on_initialize(self, message: SeenMessage) -> None:
        if not self.state.is_v2:
            self._judge_client_info(message)
        if message.params.get("protocolVersion") == self.agreement.dialect.version:
            dialects = [each.client_capabilities for each in (self.agreement.dialect, self._other_dialect)]
            self._judge_name("ACP-INIT-109", message, *dialects)

    @property
    def _other_dialect(self) -> Dialect:
        return dialect_of(1 if self.state.is_v2 else 2)

    def _judge_name(self, rule: str, message: SeenMessage, name: str, other: str) -> bool:
        """Judge whether the capabilities have the version's field name. Sending both names is also understood."""
        is_right = name in message.params or other not in message.params
        version = self.agreement.dialect.version
        detail = (
            f"initialize has {other}, which version {version} calls {name}, so the {OTHER[message.sender]} sees none"
        )
        self.judge(rule, is_right, detail, message.entry)
        return is_right

    def _judge_client_info(self, message: SeenMessage) -> None:
        info = part(message.params, "clientInfo") or part(
            message.params, "info"
        )  # a client of version 2 uses this name
        self.judge(
            "ACP-INIT-105",
            bool(text(info, "name")) and bool(text(info, "version")),
            "initialize has no clientInfo with name and version",
            message.entry,
        )

    @watch("event exited")
    def on_death(self, message: SeenMessage) -> None:
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
    def on_initialized(self, message: SeenMessage) -> None:
        request = message.request
        if request is None:
            return
        asked, answered = request.params.get("protocolVersion"), message.params.get("protocolVersion")
        if message.kind == "error":
            self._judge_refusal(message, request)
            return
        self.count_occasion("ACP-INIT-001")
        if answered == self.agreement.dialect.version:
            dialects = [each.agent_capabilities for each in (self.agreement.dialect, self._other_dialect)]
            self._is_named = self._judge_name("ACP-INIT-013", message, *dialects) and message.fits
        if asked != answered and answered == 1:  # requested version 2 and got version 1
            self._judge_client_info(request)
        if self._has_strange_capability(request):
            self.count_occasion("ACP-INIT-009")
        if answered == 1:  # version 2 has another place for it
            info = part(message.params, "agentInfo")
            self.judge(
                "ACP-INIT-005",
                bool(text(info, "name")) and bool(text(info, "version")),
                "the answer to initialize has no agentInfo with name and version",
                message.entry,
            )
        if isinstance(asked, int) and isinstance(answered, int):
            self._judge_version(asked, answered, request.entry, message)

    def _has_strange_capability(self, request: SeenMessage) -> bool:
        return not part(request.params, self.agreement.dialect.client_capabilities).keys() <= CLIENT_CAPABILITIES

    def _judge_refusal(self, message: SeenMessage, request: SeenMessage) -> None:
        """Judge an error as the answer to a correct `initialize`.

        Since version 2, an error is correct if every known version of the agent is above the requested one.
        Otherwise the agent should have answered with a version that it supports.
        """
        asked = request.params.get("protocolVersion")
        if not request.fits or not isinstance(asked, int):
            return
        if message.code == ErrorCode.UNSUPPORTED_VERSION:
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
            if asked < 1 and message.code != ErrorCode.UNSUPPORTED_VERSION:
                detail = f"version {asked} was refused with {message.code}; expected {ErrorCode.UNSUPPORTED_VERSION}"
                self.fail("ACP-INIT-012", detail, request.entry, message.entry)
            if asked < 1 or message.code == ErrorCode.UNSUPPORTED_VERSION:
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

    def _judge_version(self, asked: int, answered: int, request: ConversationEntry, answer: SeenMessage) -> None:
        if asked > LATEST_KNOWN_VERSION:
            self.judge(
                "ACP-INIT-003",
                answered != asked,
                f"the agent accepted version {asked}, which does not exist; expected the latest that it supports",
                request,
                answer.entry,
            )
        elif asked in self.state.memory.versions or answered == asked:
            self.judge(
                "ACP-INIT-004",
                answered == asked,
                f"asked for version {asked}, which it supports, the agent answered {answered}; expected {asked}",
                request,
                answer.entry,
            )
        if asked == 1 and not (answered != 1 and 1 in self.state.memory.versions):
            self.judge(
                "ACP-INIT-010",
                answered == 1,
                f"asked for version 1, the agent answered {answered}: by the rules of version 1 nothing more is judged",
                request,
                answer.entry,
            )
        if answered > asked:
            self._too_new = answer
        self.judge(
            "ACP-INIT-012",
            answered <= asked,
            f"asked for version {asked}, the agent answered {answered}, which is above it; expected the highest that is"
            f" not, or the error {ErrorCode.UNSUPPORTED_VERSION}",
            request,
            answer.entry,
        )

    @watch("event stdin", "event exited")
    def on_end(self, _message: SeenMessage) -> None:
        if self._too_new is not None:
            self.count_occasion("ACP-INIT-103")
            self._too_new = None

    @watch("answer")
    def on_answer(self, message: SeenMessage) -> None:
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
        elif method.capability is not None and method.stable and request.method not in PER_ITEM and self._is_named:
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
            return False  # each call and terminal says whether it can be cancelled: ACP-TOOL-015 and ACP-TERM-011
        if capability is None:
            return False
        side = OTHER[request.sender]
        path = capability.removeprefix(f"{side}.")  # version 2 paths start with the side
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
    def on_initialized(self, message: SeenMessage) -> None:
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
    def on_authenticate(self, message: SeenMessage) -> None:
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
    def on_logout(self, message: SeenMessage) -> None:
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
    def on_authenticated(self, message: SeenMessage) -> None:
        request = message.request
        if request is None or self.agreement.initialized is None:
            return
        if message.kind == "result":
            self._login = message.entry
        ids = [text(each, self.agreement.dialect.method_id) for each in self.agreement.auth_methods]
        asked = text(request.params, "methodId")
        if asked is not None and asked not in ids and (None not in ids or asked.startswith(INVENTED)):
            self._login = None
            self.judge(
                "ACP-AUTH-005",
                message.kind == "error",
                f"{request.method} with {asked!r}, which was not advertised, succeeded; expected an error",
                request.entry,
                message.entry,
            )

    @watch("result logout", "result auth/logout")
    def on_logged_out(self, _message: SeenMessage) -> None:
        self._login = None

    @watch("answer session/new")
    def on_session(self, message: SeenMessage) -> None:
        needs_login = message.code == ErrorCode.AUTH_REQUIRED
        if self._login is not None:
            self.judge(
                "ACP-AUTH-002",
                not needs_login,
                "session/new requires authentication after a successful login",
                self._login,
                message.entry,
            )
        if needs_login:
            self.judge(
                "ACP-AUTH-004",
                bool(self.agreement.auth_methods),
                "session/new requires authentication, but authMethods is empty; expected a way to log in",
                *([self.agreement.initialized.entry] if self.agreement.initialized else []),
                message.entry,
            )
