"""Watches the services of clients for agents: files and terminals."""

import posixpath
import re
from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import SeenMessage, is_absolute, may_be_same_path, number, offered, part, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import SeenSession, SeenTerminal
from dragoman.check.rule import V1, Version
from dragoman.errors import ErrorCode

TERMINAL_USES = ("terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_MISSING = re.compile(rb"no such file|not found|not exist|ENOENT", re.IGNORECASE)
_DENIED = re.compile(rb"permission|denied|not allowed|declined|reject|forbidden", re.IGNORECASE)
"""Words of a client whose user does not allow a file to be read; there is no error code for it."""


class FileObserver(Observer):
    """Judges the file system methods."""

    area: ClassVar[str] = "FS"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._written: dict[str, ConversationEntry] = {}

    @watch("request fs/read_text_file", "request fs/write_text_file")
    def see_request(self, message: SeenMessage) -> None:
        is_read = message.method == "fs/read_text_file"
        if self.agreement.is_known:
            capability = "readTextFile" if is_read else "writeTextFile"
            self.judge(
                "ACP-FS-001" if is_read else "ACP-FS-002",
                self.agreement.client_offers(f"fs.{capability}"),
                f"{message.method} was called, {self.agreement.explain_lack(f'fs.{capability}')}",
                *([self.agreement.initialize.entry] if self.agreement.initialize else []),
                message.entry,
            )
        path, line = text(message.params, "path"), number(message.params, "line")
        if path is not None:
            self.judge("ACP-FS-003", is_absolute(path), f"the path is {path!r}; expected it absolute", message.entry)
        if line is not None:
            self.judge("ACP-FS-004", line >= 1, f"the line is {line:g}; lines begin with 1", message.entry)

    @watch("answer fs/write_text_file")
    def see_written(self, message: SeenMessage) -> None:
        request = message.request
        path = text(request.params, "path") if request is not None else None
        if request is None or path is None:
            return
        if message.kind == "result":
            self._written[path] = message.entry
        elif path not in self._written and self._is_missed(message, request, path):
            self.fail(
                "ACP-FS-101",
                f"writing {path!r} failed because it is not there; expected the client to create it",
                request.entry,
                message.entry,
            )

    def _is_missed(self, answer: SeenMessage, request: SeenMessage, path: str) -> bool:
        """Tell whether a write failed because the file does not exist, in the session's own directory."""
        session = self.state.session(request)
        is_here = (
            session is not None and session.cwd is not None and may_be_same_path(posixpath.dirname(path), session.cwd)
        )
        says_so = answer.code == ErrorCode.RESOURCE_NOT_FOUND or _MISSING.search(answer.entry.line) is not None
        is_denied = _DENIED.search(answer.entry.line) is not None
        return (
            is_here and says_so and not is_denied and request.fits and self.agreement.client_offers("fs.writeTextFile")
        )

    @watch("answer fs/read_text_file")
    def see_read(self, message: SeenMessage) -> None:
        request = message.request
        path = text(request.params, "path") if request is not None else None
        if request is None or path is None:
            return
        written = self._written.get(path)
        is_denied = message.kind == "error" and _DENIED.search(message.entry.line) is not None
        is_judged = request.fits and not is_denied and offered(self.agreement.capabilities["client"], "fs.readTextFile")
        if written is not None and is_judged:
            self.judge(
                "ACP-FS-101",
                message.kind == "result",
                f"{path!r} was written, and reading it failed with {message.code}",
                written,
                request.entry,
                message.entry,
            )
        limit, content = number(request.params, "limit"), text(message.params, "content")
        if limit is not None and content is not None:
            lines = content.count("\n") + (1 if content and not content.endswith("\n") else 0)
            self.judge(
                "ACP-FS-102",
                lines <= limit,
                f"asked for {limit:g} lines, the client sent {lines}",
                request.entry,
                message.entry,
            )


class TerminalObserver(Observer):
    """Judges the terminal methods."""

    area: ClassVar[str] = "TERM"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._told: set[str] = set()

    @watch("request terminal/create", *(f"request {each}" for each in TERMINAL_USES))
    def see_request(self, message: SeenMessage) -> None:
        if self.agreement.is_known:
            self.judge(
                "ACP-TERM-001",
                self.agreement.client_offers("terminal"),
                f"{message.method} was called, {self.agreement.explain_lack('terminal')}",
                *([self.agreement.initialize.entry] if self.agreement.initialize else []),
                message.entry,
            )

    @watch("request terminal/create")
    def see_create(self, message: SeenMessage) -> None:
        cwd = text(message.params, "cwd")
        if cwd is not None:
            self.judge("ACP-TERM-002", is_absolute(cwd), f"cwd is {cwd!r}; expected an absolute path", message.entry)

    @watch("result terminal/create")
    def see_created(self, message: SeenMessage) -> None:
        terminal = self.state.terminals.get(text(message.params, "terminalId") or "")
        self.judge(
            "ACP-TERM-101",
            terminal is None,
            "terminal/create returned an id that it returned before; expected a new one",
            *([terminal.created] if terminal else []),
            message.entry,
        )

    @watch(*(f"request {each}" for each in TERMINAL_USES))
    def see_use(self, message: SeenMessage) -> None:
        terminal_id = text(message.params, "terminalId")
        if self.agreement.initialized is None or terminal_id is None:
            return
        terminal = self.state.terminals.get(terminal_id)
        self.judge(
            "ACP-TERM-005",
            terminal is not None,
            f"{message.method} for the terminal {terminal_id!r}, which the client never returned",
            message.entry,
        )
        if terminal is not None:
            self.judge(
                "ACP-TERM-004",
                terminal.released is None,
                f"{message.method} for the terminal {terminal_id!r}, which was released",
                *([terminal.released] if terminal.released else []),
                message.entry,
            )

    @watch("answer terminal/output", "answer terminal/wait_for_exit", "answer terminal/kill")
    def see_answer(self, message: SeenMessage) -> None:
        request = message.request
        terminal = self._terminal(request)
        if request is None or terminal is None:
            return
        if terminal.released is not None:
            if terminal.released.n < request.entry.n:
                self.judge(
                    "ACP-TERM-105",
                    message.kind == "error",
                    f"{request.method} of a released terminal succeeded; expected an error",
                    terminal.released,
                    request.entry,
                    message.entry,
                )
        elif terminal.killed is not None and request.method != "terminal/kill" and request.fits:
            self.judge(
                "ACP-TERM-104",
                message.kind == "result",
                f"{request.method} of a killed terminal failed with {message.code}; it is valid until its release",
                terminal.killed,
                request.entry,
                message.entry,
            )

    @watch("result terminal/output")
    def see_output(self, message: SeenMessage) -> None:
        request = message.request
        terminal, output = self._terminal(request), text(message.params, "output")
        if request is None or terminal is None or output is None:
            return
        if terminal.max_bytes is not None:
            size = len(output.encode())
            self.judge(
                "ACP-TERM-102",
                size <= terminal.max_bytes,
                f"the output has {size} bytes; the limit is {terminal.max_bytes:g}",
                terminal.created,
                message.entry,
            )
        if message.params.get("truncated") is True:
            self.judge(
                "ACP-TERM-103",
                not output.startswith(REPLACEMENT),
                "the output begins with half a character; expected the cut between characters",
                message.entry,
            )
        if terminal.exited is not None and terminal.exited.n < request.entry.n:
            self.judge(
                "ACP-TERM-106",
                bool(part(message.params, "exitStatus")),
                "the command has ended, and its output has no exitStatus",
                terminal.exited,
                message.entry,
            )

    def _terminal(self, request: SeenMessage | None) -> SeenTerminal | None:
        terminal_id = text(request.params, "terminalId") if request is not None else None
        return self.state.terminals.get(terminal_id) if terminal_id is not None else None

    @watch("result terminal/release")
    def see_released(self, message: SeenMessage) -> None:
        del message
        self.saw("ACP-TERM-003")

    def end(self) -> None:
        for terminal in self.state.terminals.values():
            done = terminal.exited or terminal.killed
            session = self.state.sessions.get(terminal.session_id or "")
            if done is None or terminal.released is not None or session is None or self._is_releasing(terminal):
                continue
            over = _find_end_after(session, done)
            if over is not None:
                self.fail(
                    "ACP-TERM-003",
                    f"the terminal {terminal.id!r} is done with, its turn is over, and it was never released",
                    terminal.created,
                    done,
                    over,
                )

    def _is_releasing(self, terminal: SeenTerminal) -> bool:
        return any(
            request.method == "terminal/release" and text(request.params, "terminalId") == terminal.id
            for request in self.requests.pending["agent"].values()
        )


def _find_end_after(session: SeenSession, done: ConversationEntry) -> ConversationEntry | None:
    end = session.last.end if session.last is not None and session.turn is None else None
    return end.entry if end is not None and end.entry.n > done.n else None
