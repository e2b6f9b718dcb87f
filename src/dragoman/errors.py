"""Every exception that dragoman raises, in one tree. `tests/test_error_tree.py` checks that it is complete.

    DragomanError
    ├── RpcError                  a handler refuses, and this is the response to send
    │   ├── MethodNotFoundError   the method does not exist here
    │   └── InvalidParamsError    the parameters of a request do not fit its schema
    ├── RemoteError               the other side answered our request with an error
    ├── InvalidResultError        the other side's answer does not fit the schema
    ├── ConnectionClosedError     the connection is closed, and no answer will arrive
    │   └── ProcessDiedError      … because the process at its other end has died
    ├── MessageTooLongError       our message is longer than any transport accepts
    ├── DeadlockError             a notification handler called its own connection
    ├── StartError                a process could not be started
    │   └── CommandNotFoundError  … because the command does not exist
    ├── SessionNotFoundError      the session does not exist
    ├── SessionBusyError          the session is already open, in this process or another
    ├── SessionUnreadableError    the file of the session exists but cannot be used
    ├── LogError                  a session log can no longer be written or read
    │   └── LogFileError          … because of its file
    ├── InvalidCursorError        the cursor does not come from this list
    ├── McpServerError            an MCP server refused, broke the protocol, or does not exist
    ├── UnknownModelError         no model has this name
    ├── ModelError                the model could not answer
    │   ├── ContextOverflowError  … because the conversation is too long for it
    │   └── MissingKeyError       … because it has no key, or a wrong one
    └── ScriptError               a model script is wrong, at this file and line

The exceptions of a single package are in its modules. A parent other than DragomanError is in brackets:

    agent     CallCancelledError(ToolError), CallDeniedError, MissingArgumentsError(McpServerError), StateError,
              TargetChangedError, ToolError, TurnEndedError, UnawaitedCallError
    assistant InvalidEditError(ProfileEditError), InvalidKeyError, KeysFileError(PrivateFileError),
              MissingVariableError, ModelConnectError, NoModelServerError, PreferencesFileError(PrivateFileError),
              ProfileEditError, ProfileError, TrustStoreError, UnclearCommandError, YamlError
    bridge    AccessUnavailableError, AgentEndedError(NoAnswerError), AgentsFileError(BridgeError),
              BridgeBusyError(BridgeError), BridgeError, ClientGoneError, HttpError, InvalidServedAddressError,
              JournalInUseError, ListenError, NoAnswerError(BridgeError), NodeGoneError, SearchIndexError,
              TokenFileError(PrivateFileError), TooManySharesError, TooManyTextsError, TooManyViewersError(BridgeError)
    catalog   AgentEnvironmentError, AgentUnavailableError, DownloadError, InstallError, KnownAgentsError
    check     BaselineError, ClientNotStartedError, FloodedError, InvalidScriptError, ReportError, TraceError,
              UnsupportedVersionError
    cli       AgentCommandError, AmbiguousSessionError(RequestNotSentError), InvalidColumnError, InvalidImageError,
              InvalidInputError, InvalidProgramError, NoProviderError, NoTerminalError(RequestNotSentError),
              NothingToContinueError(RequestNotSentError), OutputError, PortUnavailableError, ProjectError,
              UnknownCommandError, UnlistedSessionError(RequestNotSentError), UsageError
    client    CancelIgnoredError, ConnectError, EventsLostError, InvalidDirectoryError(RequestNotSentError),
              InvalidRuleError, InvalidServerError(RequestNotSentError), LoginRequiredError,
              MissingCapabilityError(RequestNotSentError), NotAnAgentError(ConnectError),
              NotOfferedError(RequestNotSentError), NothingToExportError, PromptRunningError(RequestNotSentError),
              RequestNotSentError, SessionClosedError(RequestNotSentError), StartTimeoutError(ConnectError),
              TurnStoppedError, TurnTimeoutError, WrongVersionError(ConnectError)
    files     FileAccessError(PathError), FileTooLargeError(PathError), InvalidPathError(PathError),
              NotAFileError(PathError), NotTextError(PathError), OutsideBoundaryError(PathError), PathError,
              PrivateFileError
    home      InvalidHomeError
    mcp       AuthorizationError(McpServerError), AuthorizationRequiredError(AuthorizationError),
              HttpStatusError(McpServerError), InvalidAnnotationError, KeyringUnavailableError(McpServerError),
              SessionForgottenError(ConnectionClosedError), UnknownMethodError(McpServerError), UnsendableResultError,
              UnusableFunctionError
    protocol  AddressError(ConnectionClosedError), InvalidAddressError, LinkError, NoWebSocketError(AddressError)
    recording RecordingError, TrajectoryError
    runner    InvalidPlaceError
    sandbox   SandboxUnavailableError
    store     DatabaseRefusedError(LogError), DatabaseUnavailableError(LogError), FencedError(LogError),
              InvalidRetentionError, InvalidStoreAddressError, LeaseLostError(LogError), MoveError, ReceiverGoneError,
              SchemaMismatchError(LogError), SessionExistsError(LogError), StoreNotInstalledError,
              UnreadableMessageError, WriteQueueFullError(LogError)
    telemetry TelemetryError

Every message states the mistake and, if there is one, the fix. The fields of an `RpcError` are sent to the other side,
so they must not contain a traceback or a secret.
"""

import errno as codes
import os
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, cast

import msgspec


class ErrorCode(IntEnum):
    """The error codes of JSON-RPC 2.0 and of ACP. The MCP codes are for `mcp/message`, if the binding itself fails."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REQUEST_CANCELLED = -32800
    AUTH_REQUIRED = -32000
    RESOURCE_NOT_FOUND = -32002
    UNSUPPORTED_VERSION = -32022
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
    ErrorCode.UNSUPPORTED_VERSION: "Unsupported protocol version",
    ErrorCode.MCP_LIMIT_EXCEEDED: "Too many MCP requests",
    ErrorCode.MCP_SERVER_UNAVAILABLE: "MCP server unavailable",
    ErrorCode.MCP_BACKEND_FAILED: "MCP server failed",
}
"""The standard phrase of each code. A message begins with it, and a sentence about the case follows."""


class DragomanError(Exception):
    """The root of all exceptions."""


class RpcError(DragomanError):
    """The error that a handler sends instead of a result.

    Clients show `message`: the standard phrase of the code, then a sentence with the problem and the fix. The sentence
    is `data` if that is a string, or else its `problem`. Other members of `data` are for programs.
    """

    def __init__(self, code: int, data: Any = None, *, phrase: str | None = None, sentence: str | None = None) -> None:
        self.code = code
        self.data = data
        phrase = phrase or _standard_phrase(code)
        sentence = (sentence or _sentence_of(data)).strip()
        self.message = f"{phrase}: {sentence}" if sentence else phrase
        super().__init__(self.message)


class MethodNotFoundError(RpcError):
    """The method does not exist. `sentence` explains this if the name is not enough."""

    def __init__(self, method: str, *, sentence: str | None = None) -> None:
        super().__init__(ErrorCode.METHOD_NOT_FOUND, {"method": method}, sentence=sentence or method)


class InvalidParamsError(RpcError):
    """The parameters of a request are invalid. `data` has the path, the expected value and the actual one.

    `problem` is the sentence, unless a longer one is given.
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
        details = {key: value for key, value in data.items() if value is not None}
        super().__init__(ErrorCode.INVALID_PARAMS, details, sentence=sentence)

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class RemoteError(DragomanError):
    """The other side answered our request with an error. `text` is for the user."""

    def __init__(self, method: str, code: int, message: str, data: Any = None) -> None:
        self.method = method
        self.code = code
        self.message = message
        self.data = data
        self.text = error_text(code, message, data)
        super().__init__(f"the answer to {method} is an error: {self.text}")


class InvalidResultError(DragomanError):
    """The other side answered our request with an invalid result."""

    def __init__(self, method: str, problem: str) -> None:
        self.method = method
        self.problem = problem
        super().__init__(f"the answer to {method} violates the protocol: {problem}")


class ConnectionClosedError(DragomanError):
    """The connection is closed. No answer will arrive, and nothing can be sent."""

    def __init__(self, reason: str = "the connection is closed") -> None:
        self.reason = reason
        super().__init__(reason)


class ProcessDiedError(ConnectionClosedError):
    """The process at the other end of the connection has died."""

    def __init__(
        self, command: str, *, exit_code: int | None = None, signal: int | None = None, stderr_tail: str = ""
    ) -> None:
        self.command = command
        self.exit_code = exit_code
        self.signal = signal
        self.stderr_tail = stderr_tail
        super().__init__(_describe_death(command, exit_code, signal, stderr_tail))


class MessageTooLongError(DragomanError):
    """A message was not sent, because it is longer than any transport accepts."""

    def __init__(self, size: int, max_bytes: int) -> None:
        self.size = size
        self.max_bytes = max_bytes
        super().__init__(
            f"a message of {size} bytes was not sent: the limit is {max_bytes} bytes; send smaller messages"
        )


class DeadlockError(DragomanError):
    """A notification handler awaited a call on its own connection. The answer would wait for that handler."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(
            f"{method} was called from a notification handler of the same "
            "connection: its answer would wait forever for "
            "the handler to finish; start a task for the call and let the handler return"
        )


class StartError(DragomanError):
    """A process could not be started."""

    def __init__(self, command: str, reason: str) -> None:
        self.command = command
        self.reason = reason
        super().__init__(f"cannot start {command}: {reason}")


class CommandNotFoundError(StartError):
    """The command does not exist."""

    def __init__(self, command: str) -> None:
        super().__init__(command, "no such command; use its full path, or install it and check that it is on PATH")


class SessionNotFoundError(DragomanError):
    """The session does not exist."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"there is no session {session_id}; it may have been deleted, or have had no prompt")


class SessionBusyError(DragomanError):
    """The session is already open. `pid` on `host` has it, if the lock could be read."""

    def __init__(self, session_id: str, pid: int | None, host: str | None, free_in_s: float | None = None) -> None:
        """Create the error. `free_in_s` is the known time after which a dead process loses the session."""
        self.session_id = session_id
        self.pid = pid
        self.host = host
        holder = f"process {pid} on {host}" if pid is not None else "another process"
        step = "close it there, or end that process, first"
        if free_in_s is not None:
            step += f"; if that process is gone, it can be opened in {free_in_s:.0f} s"
        super().__init__(f"session {session_id} is in use by {holder}; {step}")


class SessionUnreadableError(DragomanError):
    """The file of a session exists but cannot be used. It was not changed."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the session in {path} cannot be read: {problem}; the file was not changed")


class LogError(DragomanError):
    """A session log can no longer be used. The records before the failure are kept."""


class LogFileError(LogError):
    """The file of a session log can no longer be used."""

    def __init__(self, path: str, errno: int, action: str) -> None:
        self.path = path
        self.errno = errno
        self.action = action
        problem = _PROBLEMS.get(errno) or os.strerror(errno)
        super().__init__(f"cannot {action} {path}: {problem}; {_next_step(errno, action)}")


class InvalidCursorError(DragomanError):
    """The cursor does not come from this list."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}; request the first page again, without a cursor")


_PROBLEMS = {codes.ESTALE: "another program has changed it"}


class McpServerError(DragomanError):
    """An MCP server refused a request, broke the protocol, or does not exist."""


class UnknownModelError(DragomanError):
    """No model has this name."""

    def __init__(self, name: str, near: str | None = None) -> None:
        self.name = name
        self.near = near
        expected = "expected guide, script:FILE or PROVIDER:NAME, such as openai:gpt-5"
        super().__init__(f"there is no model {name!r}; {f'did you mean {near}?' if near else expected}")


class ModelError(DragomanError):
    """The model could not answer. The message tells the user why."""


class ContextOverflowError(ModelError):
    """The conversation is too long for the model."""


class MissingKeyError(ModelError):
    """The model needs a key but has none, or rejected its key."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}; {remedy}")


class ScriptError(DragomanError):
    """A model script is wrong at this file and line. Line 0 means the file itself."""

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
    codes.ESTALE: "close the other program that writes to it, then try again",
    codes.EEXIST: "use an id that was never used",
    codes.EMFILE: "raise the limit on open files (ulimit -n), then try again",
}
_PERMISSION = "check that this user may read and write it, then try again"
_ELSEWHERE = "check the permissions, or set DRAGOMAN_HOME to a directory you can write to"
_OTHERWISE = "fix that, then try again"
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
    """Return the sentence in the data of one of our errors."""
    if isinstance(data, dict):
        data = cast("dict[str, Any]", data).get("problem")
    return data if isinstance(data, str) else ""


_TEXT_KEYS = ("problem", "details", "detail", "message", "reason", "error", "method", "uri")
"""The keys under which agents, clients and servers put the text of an error's data."""


MAX_ERROR_CHARS = 4000
"""The most characters of the other side's error that are shown, more than any user reads."""


def error_text(code: int, message: str, data: Any) -> str:
    """Return the text of an error, with each part once: its message, and its data if that says more.

    The standard phrase is omitted if a sentence follows it. If a message was cut, the data has the whole text.
    """
    details = _text_of(data)
    phrase, sentence = _split_message(code, message)
    flat, flat_details = " ".join(sentence.split()), " ".join(details.split())
    if flat_details in flat and flat_details != flat:
        text = sentence
    elif flat.removesuffix("…") in flat_details:
        text = details
    else:
        text = f"{sentence}: {details}"
    if not text:
        text = phrase or _standard_phrase(code)
    elif phrase and code in _NEEDED_PHRASES and len(text.split()) < _LEAST_SENTENCE:
        text = f"{phrase}: {text}"
    return text if len(text) <= MAX_ERROR_CHARS else f"{text[: MAX_ERROR_CHARS - 1]}…"


_NEEDED_PHRASES = frozenset({ErrorCode.METHOD_NOT_FOUND, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.REQUEST_CANCELLED})
"""The codes whose phrase is needed before a mere name. The phrases of other codes add nothing."""
_LEAST_SENTENCE = 4
"""The number of words from which a text is more than a name."""


def _split_message(code: int, message: str) -> tuple[str, str]:
    """Return the standard phrase and the rest of a message, each if present. Some SDKs quote the phrase."""
    message = message.strip()
    phrase = _standard_phrase(code)
    for start in (phrase, f'"{phrase}"'):
        rest = message[len(start) :]
        if message.lower().startswith(start.lower()) and rest[:1] in ("", ":", "."):
            return phrase, rest[1:].strip()
    return "", message


def _text_of(data: Any) -> str:
    match data:
        case None:
            return ""
        case str():
            return data.strip()
        case dict():
            return _text_of_members(cast("Mapping[str, Any]", data))
        case _:
            return msgspec.json.encode(data, enc_hook=str).decode()


def _text_of_members(data: Mapping[str, Any]) -> str:
    for key in _TEXT_KEYS:
        if isinstance(data.get(key), str | dict) and (text := _text_of(data[key])):
            return text
    return "; ".join(f"{key}: {_text_of(value)}" for key, value in data.items())


def _describe_death(command: str, exit_code: int | None, signal: int | None, stderr_tail: str) -> str:
    if signal is not None:
        how = f"was killed by signal {signal}"
    elif exit_code is not None:
        how = f"exited with code {exit_code}"
    else:
        how = "closed its output but still runs"
    tail = stderr_tail.strip()
    return f"{command} {how}; its stderr ends:\n{tail}" if tail else f"{command} {how} and wrote nothing to stderr"
