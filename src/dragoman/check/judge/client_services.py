"""Rules about a client's services for agents: files and terminals."""

import posixpath
import re
from typing import ClassVar

from dragoman.check.conversation import ConversationEntry
from dragoman.check.judge.message import SeenMessage, is_absolute, may_be_same_path, number, offered, part, text
from dragoman.check.judge.observer import FindingSink, Observer, watch
from dragoman.check.judge.session import SeenSession, SeenTerminal
from dragoman.check.judge.state import PROOF_S
from dragoman.check.rule import V1, Version
from dragoman.errors import ErrorCode

TERMINAL_USES = ("terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_MISSING = re.compile(rb"no such file|not found|not exist|ENOENT", re.IGNORECASE)
_DENIED = re.compile(rb"permission|denied|not allowed|declined|reject|forbidden", re.IGNORECASE)
"""Phrases of a client whose user does not allow reading a file. The protocol has no error code for it."""


class FileObserver(Observer):
    """Judges the file system methods."""

    area: ClassVar[str] = "FS"
    versions: ClassVar[tuple[Version, ...]] = V1

    def __init__(self, sink: FindingSink) -> None:
        super().__init__(sink)
        self._written: dict[str, SeenMessage] = {}
        """Responses to the last write of each file."""
        self._whole: dict[str, SeenMessage] = {}
        """Responses to the last complete read of each file since it was written."""

    @watch("request fs/read_text_file", "request fs/write_text_file")
    def on_request(self, message: SeenMessage) -> None:
        is_read = message.method == "fs/read_text_file"
        if self.agreement.is_known:
            capability = "readTextFile" if is_read else "writeTextFile"
            self.judge(
                "ACP-FS-001" if is_read else "ACP-FS-002",
                self.agreement.client_offers(f"fs.{capability}"),
                f"{message.method} was called, {self.agreement.explain_missing_capability(f'fs.{capability}')}",
                *([self.agreement.initialize.entry] if self.agreement.initialize else []),
                message.entry,
            )
        path, line = text(message.params, "path"), number(message.params, "line")
        if path is not None:
            self.judge(
                "ACP-FS-003", is_absolute(path), f"the path is {path!r}; expected an absolute path", message.entry
            )
        if line is not None:
            self.judge("ACP-FS-004", line >= 1, f"the line is {line:g}; lines begin with 1", message.entry)

    @watch("answer fs/write_text_file")
    def on_written(self, message: SeenMessage) -> None:
        request = message.request
        path = text(request.params, "path") if request is not None else None
        if request is None or path is None:
            return
        if message.kind == "result":
            self._written[path] = message
            self._whole.pop(path, None)
        elif path not in self._written and self._is_missed(message, request, path):
            self.fail(
                "ACP-FS-101",
                f"writing {path!r} failed because the file does not exist; expected the client to create it",
                request.entry,
                message.entry,
            )

    def _is_missed(self, answer: SeenMessage, request: SeenMessage, path: str) -> bool:
        """Return whether a write to the session's own directory failed because the file does not exist."""
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
    def on_read(self, message: SeenMessage) -> None:
        """Judge a file that the client reads for the agent, and compare it with an earlier write of the agent."""
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
                written.entry,
                request.entry,
                message.entry,
            )
        content = text(message.params, "content")
        if content is not None and request.params.keys() & {"line", "limit"}:
            self._judge_lines(content, path, request, message)
        elif content is not None:
            self._judge_content(content, path, message)

    def _judge_content(self, content: str, path: str, answer: SeenMessage) -> None:
        """Judge a complete file. An editor may have formatted it since it was written, but hardly emptied it."""
        self._whole[path] = answer
        written = self._written.get(path)
        if written is not None and written.request is not None:
            expected = text(written.request.params, "content") or ""
            detail = f"{path!r} was written, and is empty when it is read"
            self.judge("ACP-FS-101", bool(content.strip() or not expected.strip()), detail, written.entry, answer.entry)

    def _judge_lines(self, content: str, path: str, request: SeenMessage, answer: SeenMessage) -> None:
        limit, first = number(request.params, "limit"), number(request.params, "line") or 1
        lines = content.splitlines()
        if limit is not None:
            detail = f"asked for {limit:g} lines, the client sent {len(lines)}"
            self.judge("ACP-FS-102", len(lines) <= limit, detail, request.entry, answer.entry)
        whole = self._whole.get(path)
        if (
            whole is None
            or answer.entry.at_s - whole.entry.at_s > PROOF_S
            or (limit is not None and len(lines) > limit)
        ):
            return  # it may have changed since then
        there = (text(whole.params, "content") or "").splitlines()[max(int(first), 1) - 1 :]
        expected = there if limit is None else there[: int(limit)]
        detail = f"asked for {limit or 'all'} lines from line {first:g} on, the client sent others: {lines[:1]}"
        self.judge("ACP-FS-102", lines == expected, detail, whole.entry, request.entry, answer.entry)


class TerminalObserver(Observer):
    """Judges the terminal methods."""

    area: ClassVar[str] = "TERM"
    versions: ClassVar[tuple[Version, ...]] = V1

    @watch("request terminal/create", *(f"request {each}" for each in TERMINAL_USES))
    def on_request(self, message: SeenMessage) -> None:
        if self.agreement.is_known:
            self.judge(
                "ACP-TERM-001",
                self.agreement.client_offers("terminal"),
                f"{message.method} was called, {self.agreement.explain_missing_capability('terminal')}",
                *([self.agreement.initialize.entry] if self.agreement.initialize else []),
                message.entry,
            )

    @watch("request terminal/create")
    def on_create(self, message: SeenMessage) -> None:
        cwd = text(message.params, "cwd")
        if cwd is not None:
            self.judge("ACP-TERM-002", is_absolute(cwd), f"cwd is {cwd!r}; expected an absolute path", message.entry)

    @watch("result terminal/create")
    def on_created(self, message: SeenMessage) -> None:
        terminal = self.state.terminals.get(text(message.params, "terminalId") or "")
        self.judge(
            "ACP-TERM-101",
            terminal is None,
            "terminal/create returned an id that it returned before; expected a new one",
            *([terminal.created] if terminal else []),
            message.entry,
        )

    @watch(*(f"request {each}" for each in TERMINAL_USES))
    def on_use(self, message: SeenMessage) -> None:
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
    def on_answer(self, message: SeenMessage) -> None:
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
    def on_output(self, message: SeenMessage) -> None:
        request = message.request
        terminal, output = self._terminal(request), text(message.params, "output")
        if request is None or terminal is None or output is None:
            return
        if terminal.max_bytes is not None:
            self.judge(
                "ACP-TERM-102",
                _size_of(output) <= terminal.max_bytes,
                f"the output has {_size_of(output)} bytes; the limit is {terminal.max_bytes:g}",
                terminal.created,
                message.entry,
            )
        if terminal.prints_more_than(output):
            detail = f"the output is cut to {_size_of(output)} bytes, and truncated is not true"
            self.judge(
                "ACP-TERM-102", message.params.get("truncated") is not False, detail, terminal.created, message.entry
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
                "terminal/wait_for_exit was answered, but the output has no exitStatus: either the command "
                "still runs, or the status is missing",
                terminal.exited,
                message.entry,
            )

    @watch("result terminal/wait_for_exit", "result terminal/output")
    def on_exit(self, message: SeenMessage) -> None:
        """Handle the end of a command that sleeps for a known time. Without an error it cannot have been faster."""
        terminal = self._terminal(message.request)
        status = message.params if message.method == "terminal/wait_for_exit" else part(message.params, "exitStatus")
        if terminal is None or status.get("exitCode") != 0 or terminal.killed or self._is_asked("kill", terminal):
            return
        took_s = message.entry.at_s - terminal.created.at_s
        detail = f"`{terminal.command}` was reported to have ended after {took_s:.1f} s"
        is_early = self.timeline.is_timed and took_s < terminal.sleep_s - 1
        self.judge("ACP-TERM-106", not is_early, detail, terminal.created, message.entry)

    def _terminal(self, request: SeenMessage | None) -> SeenTerminal | None:
        terminal_id = text(request.params, "terminalId") if request is not None else None
        return self.state.terminals.get(terminal_id) if terminal_id is not None else None

    @watch("result terminal/release")
    def on_released(self, _message: SeenMessage) -> None:
        self.count_occasion("ACP-TERM-003")

    def end(self) -> None:
        for terminal in self.state.terminals.values():
            done = terminal.exited or terminal.killed
            session = self.state.sessions.get(terminal.session_id or "")
            if done is None or terminal.released is not None or session is None or self._is_asked("release", terminal):
                continue
            over = _find_end_after(session, done)
            if over is not None:
                self.fail(
                    "ACP-TERM-003",
                    f"the terminal {terminal.id!r} has ended and its turn is over, but it was never released",
                    terminal.created,
                    done,
                    over,
                )

    def _is_asked(self, use: str, terminal: SeenTerminal) -> bool:
        return any(
            request.method == f"terminal/{use}" and text(request.params, "terminalId") == terminal.id
            for request in self.requests.pending["agent"].values()
        )


def _size_of(output: str) -> int:
    return len(output.encode())


def _find_end_after(session: SeenSession, done: ConversationEntry) -> ConversationEntry | None:
    end = session.last.end if session.last is not None and session.turn is None else None
    return end.entry if end is not None and end.entry.n > done.n else None
