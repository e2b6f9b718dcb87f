"""Rules about creating and resuming sessions, and about their MCP servers. `session_load.py` covers loading.

A session exists from the response that opens it. A message about a session before that is held, because the response
may follow. If it does, the order was wrong. If it never follows, the agent invented the session.
"""

import re
from typing import ClassVar
from urllib.parse import unquote

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import (
    SeenMessage,
    find_request,
    is_absolute,
    is_within,
    items,
    may_be_same_path,
    part,
    parts,
    text,
    texts,
)
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import INVENTED, PastSession
from dragoman.check.rule import V1, Version
from dragoman.errors import ErrorCode

OPENERS = ("request session/new", "request session/load", "request session/resume")
CONTENT = frozenset(
    {"agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan"}
)
"""Updates that are part of a conversation. The others describe the session's state, and may arrive at any time."""
KEEPERS = ("loadSession", "sessionCapabilities.resume", "sessionCapabilities.list")
"""Capabilities of agents that know their sessions beyond a connection."""
MAX_HELD = 100


class NewObserver(Observer):
    """Judges session/new, and the id and directories of every session."""

    area: ClassVar[str] = "NEW"

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._held: dict[str, ConversationEntry] = {}
        """The first message for each unknown session."""
        self._issued: dict[str, ConversationEntry] = {}
        self._named: dict[str, list[str]] = {}
        """Paths inside the agent's start directory that prompts have named, by session."""

    @watch("request session/prompt")
    def on_prompt(self, message: SeenMessage) -> None:
        home, session_id = self.timeline.home, text(message.params, "sessionId")
        if home is None or session_id is None:
            return
        named = self._named.setdefault(session_id, [])
        for block in parts(message.params, "prompt"):
            named.extend(find_paths(text(block, "text") or "", home))
            uri = text(block, "uri") or text(part(block, "resource"), "uri") or ""
            linked = unquote(uri.removeprefix("file://"))
            named.extend([linked] if is_within(linked, home) else [])
        del named[:-MAX_HELD]

    @watch(*OPENERS)
    def on_opening(self, message: SeenMessage) -> None:
        cwd = text(message.params, "cwd")
        if cwd is not None:
            self.judge("ACP-NEW-101", is_absolute(cwd), f"cwd is {cwd!r}; expected an absolute path", message.entry)
        roots = texts(message.params, "additionalDirectories")
        if items(message.params, "additionalDirectories"):
            bad = [each for each in roots if not is_absolute(each)]
            self.judge(
                "ACP-NEW-103", not bad, f"additionalDirectories has {bad}; expected absolute paths", message.entry
            )
        if self.agreement.initialized is not None:
            advertised = self.agreement.agent_offers("sessionCapabilities.additionalDirectories")
            self.judge(
                "ACP-NEW-102",
                advertised or "additionalDirectories" not in message.params,
                "additionalDirectories was sent, which the agent did not advertise",
                self.agreement.initialized.entry,
                message.entry,
            )

    @watch("answer session/new")
    def on_new(self, message: SeenMessage) -> None:
        request = message.request
        if request is None:
            return
        cwd = text(request.params, "cwd")
        if cwd is not None and not is_absolute(cwd):
            self.judge(
                "ACP-NEW-004",
                message.kind == "error",
                f"session/new with the cwd {cwd!r} succeeded; expected an error",
                request.entry,
                message.entry,
            )
        session_id = text(message.params, "sessionId")
        if message.kind == "error" or session_id is None:
            return
        self._judge_id(session_id, message)
        early = self._held.pop(session_id, None)
        self.count_occasion("ACP-NEW-002")
        if early is not None and early.n > request.entry.n:
            self.fail(
                "ACP-NEW-002",
                f"a message for {session_id!r} came before the answer to session/new; expected the answer first",
                request.entry,
                early,
                message.entry,
            )
        elif early is not None:
            self.fail("ACP-NEW-003", f"the agent names the session {session_id!r} before it was opened", early)

    @watch("answer session/prompt", "answer session/set_mode", "answer session/set_config_option")
    def on_use(self, message: SeenMessage) -> None:
        session, request = self.state.requested_session(message), message.request
        if session is None or request is None or session.closing is not None or session.closed is not None:
            return
        past = self.state.memory.past(session.id)
        links = any(text(each, "type") != "text" for each in parts(request.params, "prompt"))
        if not (past.closed or past.is_lost or links):  # this error code may be about a linked file
            self.judge(
                "ACP-NEW-007",
                message.code != ErrorCode.RESOURCE_NOT_FOUND,
                f"{request.method} for {session.id!r} was refused with -32002, though nobody has closed that session",
                session.opened.entry,
                request.entry,
                message.entry,
            )

    def _judge_id(self, session_id: str, message: SeenMessage) -> None:
        known = self.state.memory.sessions.get(session_id)
        # An agent that forgets its sessions when it exits may count from 1 again.
        remembers = any(self.agreement.agent_offers(each) for each in KEEPERS)
        # On another connection, a list may contain it before the response to session/new arrives on this one.
        issued = known is not None and known.cwd is not None and not known.deleted
        is_used = session_id in self.state.sessions or (issued and remembers)
        before = self._issued.get(session_id)
        self.judge(
            "ACP-NEW-001",
            bool(session_id) and not is_used,
            f"session/new answered with {session_id!r}, which is an id in use; expected a new one",
            *([before] if before else []),
            message.entry,
        )
        self._issued[session_id] = message.entry

    @watch("update", "request")
    def on_agent(self, message: SeenMessage) -> None:
        if message.sender != "agent":
            return
        session_id = message.params.get("sessionId")
        if not isinstance(session_id, str):
            return
        if session_id in self.state.sessions:
            self.count_occasion("ACP-NEW-003")
            return
        if session_id in self.state.opening or not self.agreement.is_known or len(self._held) >= MAX_HELD:
            return
        self._held.setdefault(session_id, message.entry)

    @watch("request fs/read_text_file", "request fs/write_text_file", "request terminal/create")
    def on_place(self, message: SeenMessage) -> None:
        """Judge whether the agent uses paths inside of the session's directories.

        A path in the agent's start directory has its own rule, since it means that the agent ignores `cwd`.
        Paths that the prompt names are excused from that rule.
        """
        session = self.state.session(message)
        path = text(message.params, "cwd" if message.method == "terminal/create" else "path")
        if session is None or session.cwd is None or path is None or not is_absolute(path):
            return
        inside = any(is_within(path, root) for root in session.roots)
        home = self.timeline.home
        is_asked = any(is_within(path, each) for each in self._named.get(session.id, ()))
        if home is not None and not is_asked and not any(is_within(home, root) for root in session.roots):
            self.judge(
                "ACP-NEW-005",
                inside or not is_within(path, home),
                f"{message.method} is for {path!r}, where the agent was started; expected it in {session.cwd!r}",
                session.opened.entry,
                message.entry,
            )
            if not inside and is_within(path, home):
                return
        self.judge(
            "ACP-NEW-006",
            inside,
            f"{message.method} is for {path!r}, outside of {session.roots}",
            session.opened.entry,
            message.entry,
        )

    def end(self) -> None:
        for session_id, entry in self._held.items():
            if session_id in self.state.sessions:
                continue
            self.fail("ACP-NEW-003", f"the agent names the session {session_id!r}, which was never opened", entry)
        self._held.clear()


def find_paths(text: str, directory: str) -> list[str]:
    """Return the paths in a text that are a directory or inside it, without trailing punctuation."""
    found = re.findall(re.escape(directory.rstrip("/")) + r"(?:/[^\s\"'`<>()\[\]{},;]*)?(?![\w-])", text)
    return [each.rstrip(".:!?") for each in found]


def judge_invented(observer: Observer, rule: str, request: SeenMessage, answer: SeenMessage) -> None:
    """Judge the response to a request that opens a session that never existed."""
    observer.judge(
        rule,
        answer.kind == "error",
        f"{request.method} of an unknown session succeeded; expected an error",
        request.entry,
        answer.entry,
    )


def judge_reopening(observer: Observer, rule: str, capability: str, answer: SeenMessage) -> None:
    """Judge whether a session that the agent created, and that was prompted, can be loaded or resumed."""
    asked = find_request(answer)
    if asked is None:
        return
    request, session_id = asked
    past = observer.state.memory.sessions.get(session_id)
    if past is None or not past.births or not past.asked:
        return
    if not observer.agreement.agent_offers(capability) or _has_excuse(past, request, answer):
        return
    if answer.kind == "result":
        observer.count_occasion(rule)
        return
    detail = f"{request.method} of a session that the agent created and that was prompted failed with {answer.code}"
    if session_id in observer.state.sessions:
        # No clause says that an open session can be opened again.
        observer.warn(rule, f"{detail}; it was open on this connection", request.entry, answer.entry)
    else:
        observer.fail(rule, f"{detail}; expected it to continue", request.entry, answer.entry)


def _has_excuse(past: PastSession, request: SeenMessage, answer: SeenMessage) -> bool:
    """Return whether a refusal may have another reason. ACP-CLOSE-002 and ACP-INIT-006 cover two of them."""
    is_elsewhere = past.cwd is not None and not may_be_same_path(past.cwd, text(request.params, "cwd") or "")
    is_other = answer.code in (ErrorCode.AUTH_REQUIRED, ErrorCode.METHOD_NOT_FOUND) or request.cancelled is not None
    return past.is_lost or past.closed or is_elsewhere or is_other or not request.fits


class ResumeObserver(Observer):
    """Judges session/resume for version 1."""

    area: ClassVar[str] = "RESUME"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._replayed: dict[str, ConversationEntry | None] = {}

    @watch("request session/resume")
    def on_resume(self, message: SeenMessage) -> None:
        self._replayed[text(message.params, "sessionId") or ""] = None
        self.judge_offer("ACP-RESUME-101", "sessionCapabilities.resume", message)

    @watch("update")
    def on_update(self, message: SeenMessage) -> None:
        if not self._replayed:
            return
        session_id = text(message.params, "sessionId") or ""
        session = self.state.sessions.get(session_id)
        is_running = session is not None and session.turn is not None
        is_content = text(message.update, "sessionUpdate") in CONTENT
        if is_content and not is_running and self._replayed.get(session_id, message.entry) is None:
            self._replayed[session_id] = message.entry

    @watch("answer session/resume")
    def on_resumed(self, message: SeenMessage) -> None:
        asked = find_request(message)
        if asked is None:
            return
        request, session_id = asked
        replayed = self._replayed.pop(session_id, None)
        if session_id.startswith(INVENTED):
            judge_invented(self, "ACP-RESUME-002", request, message)
            return
        judge_reopening(self, "ACP-RESUME-003", "sessionCapabilities.resume", message)
        past = self.state.memory.sessions.get(session_id)
        if replayed is not None:
            self.fail(
                "ACP-RESUME-001",
                "session/resume replayed the conversation; expected no updates of it before the answer",
                request.entry,
                replayed,
                message.entry,
            )
        elif message.kind == "result" and past is not None and past.spoke:
            self.count_occasion("ACP-RESUME-001")


class McpObserver(Observer):
    """Judges the MCP servers of sessions."""

    area: ClassVar[str] = "MCP"

    @watch(*OPENERS)
    def on_opening(self, message: SeenMessage) -> None:
        for server in parts(message.params, "mcpServers"):
            transport = text(server, "type")
            guarded = ("stdio", "http") if self.state.is_v2 else ("http", "sse")
            if transport in guarded:
                self.judge_offer(
                    "ACP-MCP-102",
                    f"mcpCapabilities.{transport}",
                    message,
                    f"an MCP server over {transport} was sent, which the agent did not advertise",
                )
            command = text(server, "command")
            if transport in (None, "stdio") and command is not None:
                self.judge(
                    "ACP-MCP-103",
                    is_absolute(command),
                    f"the command of an MCP server is {command!r}; expected an absolute path",
                    message.entry,
                )

    @watch("answer session/new")
    def on_opened(self, message: SeenMessage) -> None:
        request = message.request
        if request is None or self.agreement.initialized is None:
            return
        cwd = text(request.params, "cwd")
        servers = parts(request.params, "mcpServers")
        if cwd is None or not is_absolute(cwd) or not request.fits:
            return
        if not servers:
            if "mcpServers" not in request.params:
                self.judge(
                    "ACP-MCP-007",
                    message.code != ErrorCode.INVALID_PARAMS,
                    "session/new without mcpServers was refused with -32602; in version 2 it may be left out",
                    request.entry,
                    message.entry,
                )
            return
        refused = message.code in (ErrorCode.INVALID_PARAMS, ErrorCode.METHOD_NOT_FOUND)
        kinds = {text(each, "type") or "stdio" for each in servers}
        invented = sorted(kind for kind in kinds if kind.startswith("_"))
        if invented and message.code == ErrorCode.AUTH_REQUIRED:
            return  # the login comes first
        if invented:
            self.judge(
                "ACP-MCP-006",
                message.code == ErrorCode.INVALID_PARAMS,
                f"session/new with a server of the type {invented[0]!r} was answered with "
                f"{message.code or 'a result'}; expected -32602",
                request.entry,
                message.entry,
            )
        elif kinds == {"stdio"} and not self.state.is_v2:
            self.judge(
                "ACP-MCP-001",
                not refused,
                "session/new with an MCP server on stdio was refused with "
                f"{message.code}; every agent must accept them",
                request.entry,
                message.entry,
            )
        elif kinds <= {"stdio", "http", "sse"} and all(
            (kind == "stdio" and not self.state.is_v2) or self.agreement.agent_offers(f"mcpCapabilities.{kind}")
            for kind in kinds
        ):
            self.judge(
                "ACP-MCP-004",
                not refused,
                f"session/new with {sorted(kinds)} MCP servers was refused with {message.code}, though advertised",
                self.agreement.initialized.entry,
                request.entry,
                message.entry,
            )

    @watch("event mcp")
    def on_server(self, message: SeenMessage) -> None:
        word, _, name = message.entry.event.removeprefix("mcp ").partition(" ")
        match word:
            case "connected":
                self.count_occasion("ACP-MCP-002")
            case "missed":
                self.fail("ACP-MCP-002", f"the MCP server {name!r} was not connected", message.entry)
            case "alone":
                self.count_occasion("ACP-MCP-003")
            case "leaked":
                self.fail("ACP-MCP-003", f"the MCP server {name!r} was reached from another session", message.entry)
            case _:
                pass
