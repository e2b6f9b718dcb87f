"""Every exception that dragoman raises, in one tree.

    DragomanError
    ├── RpcError               a handler refuses: this is the answer to send
    │   └── InvalidParams      the parameters of a request do not fit its schema
    ├── RemoteError            the other side answered our request with an error
    ├── InvalidResult          the other side's answer does not fit the schema
    ├── ConnectionClosed       the connection is gone; no answer will come
    │   └── ProcessDied        … because the process at its other end is
    ├── WouldDeadlock          a notification handler called its own connection
    ├── StartError             a process could not be started
    │   └── CommandNotFound    … because there is no such command
    └── ScriptError            a model script is wrong, at this file and line

Every message says what was wrong and, where there is one, the next step. Whatever is put
into an `RpcError` goes to the other side: no traceback and no secret belongs there.
"""

from enum import IntEnum
from typing import Any


class ErrorCode(IntEnum):
    """The error codes of JSON-RPC 2.0 and of ACP."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REQUEST_CANCELLED = -32800
    AUTH_REQUIRED = -32000
    RESOURCE_NOT_FOUND = -32002


MESSAGES = {
    ErrorCode.PARSE_ERROR: "Parse error",
    ErrorCode.INVALID_REQUEST: "Invalid request",
    ErrorCode.METHOD_NOT_FOUND: "Method not found",
    ErrorCode.INVALID_PARAMS: "Invalid params",
    ErrorCode.INTERNAL_ERROR: "Internal error",
    ErrorCode.REQUEST_CANCELLED: "Request cancelled",
    ErrorCode.AUTH_REQUIRED: "Authentication required",
    ErrorCode.RESOURCE_NOT_FOUND: "Resource not found",
}
"""The stable message of each code; what is particular to a case goes into `data`."""


class DragomanError(Exception):
    """The root of the tree."""


class RpcError(DragomanError):
    """The answer that a handler gives instead of a result."""

    def __init__(self, code: int, data: Any = None, *, message: str | None = None) -> None:
        self.code = code
        self.message = message or _stable_message(code)
        self.data = data
        super().__init__(_describe(self.code, self.message, data))


class InvalidParams(RpcError):
    """The parameters of a request do not fit: `data` names the path, what was expected and what came."""

    def __init__(self, path: str, problem: str, *, expected: str | None = None, got: str | None = None) -> None:
        self.path = path
        self.problem = problem
        data = {"path": path, "problem": problem, "expected": expected, "got": got}
        super().__init__(ErrorCode.INVALID_PARAMS, {key: value for key, value in data.items() if value is not None})

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class RemoteError(DragomanError):
    """The other side answered our request with an error."""

    def __init__(self, method: str, code: int, message: str, data: Any = None) -> None:
        self.method = method
        self.code = code
        self.message = message
        self.data = data
        super().__init__(f"{method} was answered with error {_describe(code, message, data)}")


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


class ScriptError(DragomanError):
    """A model script is wrong at this file and line."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        self.file = file
        self.line = line
        self.problem = problem
        super().__init__(f"{file}:{line}: {problem}")


def _stable_message(code: int) -> str:
    try:
        return MESSAGES[ErrorCode(code)]
    except ValueError:
        return "Error"


def _describe(code: int, message: str, data: Any) -> str:
    return f"{int(code)} {message}" if data is None else f"{int(code)} {message}: {data}"


def _describe_death(command: str, exit_code: int | None, signal: int | None, stderr_tail: str) -> str:
    if signal is not None:
        how = f"was killed by signal {signal}"
    elif exit_code is not None:
        how = f"exited with code {exit_code}"
    else:
        how = "closed its output but still runs"
    tail = stderr_tail.strip()
    return f"{command} {how}; its stderr ends:\n{tail}" if tail else f"{command} {how} and wrote nothing to stderr"
