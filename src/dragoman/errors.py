"""Every exception that dragoman raises, in one tree; `tests/test_error_tree.py` checks that it is complete.

    DragomanError
    ├── RpcError               a handler refuses: this is the answer to send
    │   ├── MethodNotFound     there is no such method here
    │   └── InvalidParams      the parameters of a request do not fit its schema
    ├── RemoteError            the other side answered our request with an error
    ├── InvalidResult          the other side's answer does not fit the schema
    ├── ConnectionClosed       the connection is gone; no answer will come
    │   └── ProcessDied        … because the process at its other end is
    ├── WouldDeadlock          a notification handler called its own connection
    ├── StartError             a process could not be started
    │   └── CommandNotFound    … because there is no such command
    ├── SessionUnknown         there is no such session
    ├── SessionBusy            the session is open already, in this process or another
    ├── SessionUnreadable      its file is there, but cannot be used as a session
    ├── LogFailed              the log of a session cannot be written or read any more
    │   └── LogFileFailed      because of its file
    ├── BadCursor              a cursor that did not come from this list
    ├── ServerFailure          an MCP server refused, broke the protocol, or is not there
    ├── UnknownModel           there is no model of that name
    ├── ModelFailure           the model could not answer
    │   ├── ContextOverflow    … because the conversation outgrew it
    │   └── MissingKey         … because it was given no key, or a wrong one
    └── ScriptError            a model script is wrong, at this file and line

The exceptions of a single package are in its modules; a parent other than DragomanError is in brackets:

    agent     CallCancelled(ToolFailure), CallDenied, MissingArguments(ServerFailure), StateUnusable, TargetChanged,
              ToolFailure, TurnOver
    assistant BadKey, EditRefused, ImpossibleEdit(EditRefused), KeysUnusable(PrivateFileUnusable), MissingVariable,
              NotConnected, PreferencesUnusable(PrivateFileUnusable), ProfileError, ServerUnusable, TrustFailed,
              UnclearCommand, YamlError
    bridge    AccessUnavailable, AgentsFileError(BridgeProblem), BadServedAddress, BridgeBusy(BridgeProblem),
              BridgeProblem, CannotListen, ClientGone, HttpError, NodeGone, TokenUnusable(PrivateFileUnusable),
              TooManyShares, TooManyViewers(BridgeProblem), WrongTransition
    check     BadScript, BaselineUnusable, Flooded, NeverStarted, ReportUnreadable, TraceUnreadable, VersionNotSpoken
    cli       AmbiguousSession(Refused), BadAgentsFile, BadColumn, BadImage, BadInput, BadProgram, CannotStart,
              DownloadFailed, InstallFailed, JournalInUse, KitProblem, NoCommand, NoPlace, NoProvider,
              NobodyToAsk(Refused), NothingToContinue(Refused), NothingToExport, OutputNotWritten, UnknownCommand,
              UsageError
    client    BadDirectory(Refused), BadRule, BadServer(Refused), CancelIgnored, ConnectFailed, EnvironmentUnusable,
              MissingCapability(Refused), NeedsLogin, NotAnAgent(ConnectFailed), NotOffered(Refused),
              PromptRunning(Refused), Refused, SessionClosed(Refused), StartTimeout(ConnectFailed), TurnStopped,
              TurnTimeout, WrongVersion(ConnectFailed)
    files     BadPath(PathError), FileProblem(PathError), NotAFile(PathError), NotText(PathError),
              OutsideBoundary(PathError), PathError, PrivateFileUnusable, TooLarge(PathError)
    home      BadHome
    mcp       AuthorisationFailed(ServerFailure), BadAnnotation, HttpRefusal(ServerFailure),
              KeyringUnusable(ServerFailure), NeedsAuthorisation(AuthorisationFailed),
              SessionForgotten(ConnectionClosed), UnknownMethod(ServerFailure), UnsendableResult, UnusableFunction
    protocol  AddressFailed(ConnectionClosed), BadAddress, LinkBroken, NoWebSocket(AddressFailed), NotRecorded,
              TrajectoryUnreadable
    runner    BadPlace
    store     BadRetention, BadStoreAddress, DatabaseRefused(LogFailed), DatabaseUnavailable(LogFailed),
              Fenced(LogFailed), LeaseLost(LogFailed), MoveFailed, ReceiverGone, SchemaMismatch(LogFailed),
              SessionTaken(LogFailed), StoreNotInstalled, TooMuchWaits(LogFailed), UnreadableMessage
    telemetry TelemetryUnavailable

Every message has the mistake and, where there is one, the next step. The fields of an `RpcError` go to the other side:
no traceback and no secret belongs there.
"""

import errno as codes
import os
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, cast

import msgspec


class ErrorCode(IntEnum):
    """The error codes of JSON-RPC 2.0 and of ACP; those of MCP are of `mcp/message`, when the binding itself failed."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REQUEST_CANCELLED = -32800
    AUTH_REQUIRED = -32000
    RESOURCE_NOT_FOUND = -32002
    MCP_LIMIT_EXCEEDED = -33000
    MCP_SERVER_UNAVAILABLE = -33001
    MCP_BACKEND_FAILED = -33002


MESSAGES = {
    ErrorCode.PARSE_ERROR: "Parse error",
    ErrorCode.INVALID_REQUEST: "Invalid request",
    ErrorCode.METHOD_NOT_FOUND: "Method not found",
    ErrorCode.INVALID_PARAMS: "Invalid params",
    ErrorCode.INTERNAL_ERROR: "Internal error",
    ErrorCode.REQUEST_CANCELLED: "Request cancelled",
    ErrorCode.AUTH_REQUIRED: "Authentication required",
    ErrorCode.RESOURCE_NOT_FOUND: "Resource not found",
    ErrorCode.MCP_LIMIT_EXCEEDED: "Too many MCP requests",
    ErrorCode.MCP_SERVER_UNAVAILABLE: "MCP server unavailable",
    ErrorCode.MCP_BACKEND_FAILED: "MCP server failed",
}
"""The standard phrase of each code, with which a message begins; the sentence about the case follows it."""


class DragomanError(Exception):
    """The root of the tree."""


class RpcError(DragomanError):
    """The answer that a handler gives instead of a result.

    Clients show `message`: the standard phrase of the code, then the sentence that says what is wrong and what to do.
    The sentence is `data` itself where that is a text, else its `problem`; other members of `data` are for programs.
    """

    def __init__(self, code: int, data: Any = None, *, phrase: str | None = None, sentence: str | None = None) -> None:
        self.code = code
        self.data = data
        phrase = phrase or _standard_phrase(code)
        sentence = (sentence or _sentence_of(data)).strip()
        self.message = f"{phrase}: {sentence}" if sentence else phrase
        super().__init__(self.message)


class MethodNotFound(RpcError):
    """There is no such method here."""

    def __init__(self, method: str) -> None:
        super().__init__(ErrorCode.METHOD_NOT_FOUND, {"method": method}, sentence=method)


class InvalidParams(RpcError):
    """The parameters of a request do not fit: `data` has the path, the expected value and the actual one.

    `problem` is the sentence, unless there is a longer one.
    """

    def __init__(
        self,
        path: str,
        problem: str,
        *,
        expected: str | None = None,
        got: str | None = None,
        sentence: str | None = None,
    ) -> None:
        self.path = path
        self.problem = problem
        data = {"path": path, "problem": problem, "expected": expected, "got": got}
        given = {key: value for key, value in data.items() if value is not None}
        super().__init__(ErrorCode.INVALID_PARAMS, given, sentence=sentence)

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class RemoteError(DragomanError):
    """The other side answered our request with an error; `words` is its sentence for a person."""

    def __init__(self, method: str, code: int, message: str, data: Any = None) -> None:
        self.method = method
        self.code = code
        self.message = message
        self.data = data
        self.words = join_words(code, message, data)
        super().__init__(f"the answer to {method} is an error: {self.words}")


class InvalidResult(DragomanError):
    """The other side answered our request with something that is not a valid result."""

    def __init__(self, method: str, problem: str) -> None:
        self.method = method
        self.problem = problem
        super().__init__(f"the answer to {method} breaks the protocol: {problem}")


class ConnectionClosed(DragomanError):
    """The connection is gone: no answer will come, nothing can be sent."""

    def __init__(self, reason: str = "the connection is closed") -> None:
        self.reason = reason
        super().__init__(reason)


class ProcessDied(ConnectionClosed):
    """The process at the other end of the connection is gone."""

    def __init__(
        self, command: str, *, exit_code: int | None = None, signal: int | None = None, stderr_tail: str = ""
    ) -> None:
        self.command = command
        self.exit_code = exit_code
        self.signal = signal
        self.stderr_tail = stderr_tail
        super().__init__(_describe_death(command, exit_code, signal, stderr_tail))


class WouldDeadlock(DragomanError):
    """A notification handler awaited a call on its own connection, whose answer waits behind that very handler."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(
            f"{method} was called from a notification handler of the same connection: its answer would wait for "
            "the handler to finish, for ever; start a task for the call and let the handler return"
        )


class StartError(DragomanError):
    """A process could not be started."""

    def __init__(self, command: str, reason: str) -> None:
        self.command = command
        self.reason = reason
        super().__init__(f"cannot start {command}: {reason}")


class CommandNotFound(StartError):
    """There is no such command."""

    def __init__(self, command: str) -> None:
        super().__init__(command, "no such command; give its full path, or install it and see that it is on PATH")


class SessionUnknown(DragomanError):
    """There is no such session."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"there is no session {session_id}; it may have been deleted, or never had a prompt")


class SessionBusy(DragomanError):
    """The session is open already: `pid` on `host` has it, if that could be read from the lock."""

    def __init__(self, session_id: str, pid: int | None, host: str | None, free_in_s: float | None = None) -> None:
        """`free_in_s` is the time after which a process that is gone has lost the session, where that is known."""
        self.session_id = session_id
        self.pid = pid
        self.host = host
        holder = f"process {pid} on {host}" if pid is not None else "another process"
        step = "close it there, or end that process, first"
        if free_in_s is not None:
            step += f"; if that process is gone, it can be opened in {free_in_s:.0f} s"
        super().__init__(f"session {session_id} is in use by {holder}; {step}")


class SessionUnreadable(DragomanError):
    """The file of a session is there, but it cannot be used; it is left as it is."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the session in {path} cannot be read: {problem}; the file is left as it is")


class LogFailed(DragomanError):
    """The log of a session cannot be used any more; the records before the failure are kept."""


class LogFileFailed(LogFailed):
    """The file of a log cannot be used any more."""

    def __init__(self, path: str, errno: int, action: str) -> None:
        self.path = path
        self.errno = errno
        self.action = action
        problem = _PROBLEMS.get(errno) or os.strerror(errno)
        super().__init__(f"cannot {action} {path}: {problem}; {_next_step(errno, action)}")


class BadCursor(DragomanError):
    """A cursor that did not come from this list."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}; ask for the first page, without a cursor, and go on from there")


_PROBLEMS = {codes.ESTALE: "it is not as this process left it"}


class ServerFailure(DragomanError):
    """An MCP server refused something, broke the protocol, or is not there."""


class UnknownModel(DragomanError):
    """There is no model of that name."""

    def __init__(self, name: str, near: str | None = None) -> None:
        self.name = name
        self.near = near
        expected = "expected guide, script:FILE, local:FILE or a provider's as anthropic:NAME"
        super().__init__(f"there is no model {name!r}; {f'did you mean {near}?' if near else expected}")


class ModelFailure(DragomanError):
    """The model could not answer; the message says why, for a person."""


class ContextOverflow(ModelFailure):
    """The conversation is longer than the model can take; a shorter one would be answered."""


class MissingKey(ModelFailure):
    """The model needs a key that it was not given, or does not accept the one it was given."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}; {remedy}")


class ScriptError(DragomanError):
    """A model script is wrong at this file and line; line 0 is the file itself."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        self.file = file
        self.line = line
        self.problem = problem
        super().__init__(f"{file}:{line}: {problem}" if line else f"{file}: {problem}")


_NEXT_STEPS = {
    codes.ENOSPC: "free some space on that disk, then try again",
    codes.EDQUOT: "free some of your quota on that disk, then try again",
    codes.EFBIG: "raise the limit on file sizes (ulimit -f), then try again",
    codes.EIO: "check that disk, then try again",
    codes.ENOENT: "it was removed while the session was open; put it back and try again, or start a new session",
    codes.ESTALE: "close whatever else writes to it, then try again",
    codes.EEXIST: "a session must be given an id that was never used",
    codes.EMFILE: "raise the limit on open files (ulimit -n), then try again",
}
_PERMISSION = "see that this user may read and write it, then try again"
_ELSEWHERE = "see that this user may make files there, or have DRAGOMAN_HOME name a folder where it may"
_OTHERWISE = "mend that, then try again"
_FORBIDDEN = (codes.EACCES, codes.EPERM, codes.EROFS)
_NO_FOLDER = (codes.ENOENT, codes.ENOTDIR)


def _next_step(errno: int, action: str) -> str:
    if action == "create" and errno in (*_FORBIDDEN, *_NO_FOLDER):
        return _ELSEWHERE
    if errno in _FORBIDDEN:
        return _PERMISSION
    return _NEXT_STEPS.get(errno, _OTHERWISE)


def _standard_phrase(code: int) -> str:
    try:
        return MESSAGES[ErrorCode(code)]
    except ValueError:
        return "Error"


def _sentence_of(data: Any) -> str:
    """Return the words in the data of an error of ours."""
    if isinstance(data, dict):
        data = cast("dict[str, Any]", data).get("problem")
    return data if isinstance(data, str) else ""


_TELLING = ("problem", "details", "detail", "message", "reason", "error", "method", "uri")
"""Where agents, clients and servers put the words of an error's data."""


MAX_WORDS = 4000
"""Characters of an error of the other side that are repeated: more than any person reads."""


def join_words(code: int, message: str, data: Any) -> str:
    """Return the sentence of an error, each part once: its message, and its data where that has more.

    The standard phrase is left out where a sentence follows it. A message may be cut short; then the data has it whole.
    """
    said = _words_of(data)
    phrase, sentence = _split_message(code, message)
    flat, flat_said = " ".join(sentence.split()), " ".join(said.split())
    if flat_said in flat and flat_said != flat:
        words = sentence
    elif flat.removesuffix("…") in flat_said:
        words = said
    else:
        words = f"{sentence}: {said}"
    if not words:
        words = phrase or _standard_phrase(code)
    elif phrase and code in _SAYING_SOMETHING and len(words.split()) < _LEAST_SENTENCE:
        words = f"{phrase}: {words}"
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"


_SAYING_SOMETHING = frozenset({ErrorCode.METHOD_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.REQUEST_CANCELLED})
"""Codes whose phrase is needed before a mere name; the others' add nothing to any words."""
_LEAST_SENTENCE = 4
"""Words that are more than a name."""


def _split_message(code: int, message: str) -> tuple[str, str]:
    """Return the standard phrase and the rest of a message, each if there is one; some SDKs quote the phrase."""
    message = message.strip()
    phrase = _standard_phrase(code)
    for start in (phrase, f'"{phrase}"'):
        rest = message[len(start) :]
        if message.lower().startswith(start.lower()) and rest[:1] in ("", ":", "."):
            return phrase, rest[1:].strip()
    return "", message


def _words_of(data: Any) -> str:
    match data:
        case None:
            return ""
        case str():
            return data.strip()
        case dict():
            return _words_of_members(cast("Mapping[str, Any]", data))
        case _:
            return msgspec.json.encode(data, enc_hook=str).decode()


def _words_of_members(data: Mapping[str, Any]) -> str:
    for key in _TELLING:
        if isinstance(data.get(key), str | dict) and (words := _words_of(data[key])):
            return words
    return "; ".join(f"{key}: {_words_of(value)}" for key, value in data.items())


def _describe_death(command: str, exit_code: int | None, signal: int | None, stderr_tail: str) -> str:
    if signal is not None:
        how = f"was killed by signal {signal}"
    elif exit_code is not None:
        how = f"exited with code {exit_code}"
    else:
        how = "closed its output but still runs"
    tail = stderr_tail.strip()
    return f"{command} {how}; its stderr ends:\n{tail}" if tail else f"{command} {how} and wrote nothing to stderr"
