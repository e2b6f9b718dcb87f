"""The client's own exceptions.

ConnectError                  the connection to the agent failed
├── NotAnAgentError           … the program does not speak ACP
├── StartTimeoutError         … the agent did not answer in time
└── WrongVersionError         … the agent speaks another version of the protocol
LoginRequiredError            the agent needs a login first
RequestNotSentError           the request is invalid and was not sent
├── MissingCapabilityError    … the agent lacks a capability
├── NotOfferedError           … the agent does not offer this mode, option or login method
├── InvalidDirectoryError     … a directory begins with ~, or is not a valid path
├── PromptRunningError        … the session is busy with another prompt
└── SessionClosedError        … the session was closed or deleted
CancelIgnoredError            the agent does not end a cancelled turn
EventsLostError               events of a turn were dropped, because they were not read
TurnStoppedError              `ask` got an incomplete answer
TurnTimeoutError              `run` cancelled a turn that took too long

`dragoman.errors` has the others: StartError and CommandNotFoundError for a command that does not start, and
ProcessDiedError for an agent that died.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from dragoman.errors import MESSAGES, DragomanError, ErrorCode, ProcessDiedError, RemoteError, error_text
from dragoman.protocol import v1
from dragoman.text import visible

QUOTED_LINES = 5


class ConnectError(DragomanError):
    """The agent was started or reached, but the connection failed."""

    def __init__(self, command: str, problem: str) -> None:
        self.command = command
        self.problem = problem
        super().__init__(f"{command} {problem}")


class NotAnAgentError(ConnectError):
    """The program does not speak ACP. `printed` has the lines that it wrote to stdout."""

    def __init__(
        self, command: str, problem: str, *, printed: Sequence[str] = (), died: ProcessDiedError | None = None
    ) -> None:
        self.printed = tuple(printed)
        self.exit_code = died.exit_code if died else None
        self.signal = died.signal if died else None
        self.stderr_tail = died.stderr_tail if died else ""
        step = "check that the command starts an ACP agent; many programs need a flag for that, such as --acp or acp"
        super().__init__(command, f"{problem}{_quote_lines(printed)}\n{step}")


class StartTimeoutError(ConnectError):
    """The agent did not answer `initialize` in time."""

    def __init__(self, command: str, timeout_s: float, *, stderr_tail: str = "") -> None:
        self.timeout_s = timeout_s
        self.stderr_tail = stderr_tail
        stderr = f"; its stderr ends:\n{stderr_tail.strip()}" if stderr_tail.strip() else ""
        super().__init__(
            command,
            f"sent nothing within {timeout_s:g} s of its start; if it is an ACP agent that needs longer, such as one "
            f"that is downloaded first, pass connect a longer start_timeout_s{stderr}",
        )


class WrongVersionError(ConnectError):
    """The agent speaks another version of the protocol."""

    def __init__(self, command: str, ours: int, theirs: int) -> None:
        self.ours = ours
        self.theirs = theirs
        older = "the agent" if theirs < ours else "dragoman"
        super().__init__(
            command, f"speaks version {theirs} of the protocol, and dragoman speaks version {ours}; update {older}"
        )


class LoginRequiredError(DragomanError):
    """The agent needs a login first. `methods` are its login methods, and `agent_message` is its own message."""

    def __init__(self, command: Sequence[str], methods: Sequence[v1.AuthMethod], agent_message: str = "") -> None:
        self.command = tuple(command)
        self.methods = tuple(methods)
        self.agent_message = agent_message
        super().__init__(
            describe_login(command[0], agent_message, [_describe_method(command, method) for method in methods])
        )


class RequestNotSentError(DragomanError):
    """A request that was not sent because it is invalid."""


class MissingCapabilityError(RequestNotSentError):
    """The agent did not advertise `capability`, which the request needs."""

    def __init__(self, capability: str, wanted: str, agent: str) -> None:
        self.capability = capability
        self.wanted = wanted
        self.agent = agent
        super().__init__(f"{wanted} needs {capability}, and {agent} does not have that capability")


class NotOfferedError(RequestNotSentError):
    """The agent does not offer this mode, option or method. `offered` lists the valid ones."""

    def __init__(self, noun: str, wanted: str, offered: Iterable[str]) -> None:
        self.wanted = wanted
        self.offered = tuple(offered)
        choices = f"expected one of {', '.join(map(visible, self.offered))}" if self.offered else "it offers none"
        super().__init__(f"the agent has no {noun} {wanted!r}; {choices}")


class InvalidDirectoryError(RequestNotSentError):
    """A directory that cannot be sent to an agent."""

    def __init__(self, path: str) -> None:
        self.path = path
        if path.startswith("~"):
            problem = f"the directory {path!r} begins with ~, which only a shell expands; os.path.expanduser does it"
        else:
            problem = f"{path!r} is not a directory; give a path, absolute or relative to the current directory"
        super().__init__(problem)


class PromptRunningError(RequestNotSentError):
    """The session is busy. It runs one prompt at a time."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"session {session_id} is busy with another prompt; wait until it ends, cancel it, or open another session"
        )


class SessionClosedError(RequestNotSentError):
    """The session was closed, deleted, or opened again as another object."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id} is closed here; load or resume it to continue")


class CancelIgnoredError(DragomanError):
    """The agent continues a turn that was cancelled."""

    def __init__(self, session_id: str, timeout_s: float) -> None:
        self.session_id = session_id
        self.timeout_s = timeout_s
        super().__init__(
            f"session {session_id} was cancelled, and the agent has not ended its turn within {timeout_s:g} s; "
            "open another session, or close the connection, which stops the agent"
        )


class TurnStoppedError(DragomanError):
    """A turn stopped before the answer was complete. `text` is the partial answer."""

    def __init__(self, stop_reason: str, text: str) -> None:
        self.stop_reason = stop_reason
        self.text = text
        super().__init__(f"the turn did not finish: {_REASONS.get(stop_reason, f'stopped with {stop_reason!r}')}")


class EventsLostError(DragomanError):
    """Events of a turn were dropped, because they were not read while another call waited for the same agent."""

    def __init__(self, session_id: str, count: int) -> None:
        self.session_id = session_id
        self.count = count
        super().__init__(session_id, count)

    def __str__(self) -> str:
        return (
            f"{self.count} events were dropped because the turn of session {self.session_id} was not read while "
            "another call waited for the agent; read the events in a separate task, or get the whole result with "
            "`await turn`"
        )


class TurnTimeoutError(DragomanError):
    """A turn took longer than `timeout_s` and was cancelled. If the cancellation failed, `__cause__` is that error."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        super().__init__(
            f"the turn took longer than {timeout_s:g} s and was cancelled; the result contains everything up "
            "to that point; pass a longer timeout_s to let the agent finish"
        )


_REASONS = {
    "cancelled": "it was cancelled",
    "refusal": "the agent declined the prompt",
    "max_tokens": "the model reached its limit of tokens",
    "max_turn_requests": "the agent reached its limit of requests to the model",
}


def login_message(error: RemoteError) -> str:
    """Return the agent's own message about a login, without the standard phrase and without JSON."""
    text = error_text(error.code, _plain(error.message), _plain(error.data) or None)
    return "" if text.lower() == MESSAGES[ErrorCode.AUTH_REQUIRED].lower() else text


_MESSAGE_KEYS = ("message", "details", "detail", "error", "reason", "problem", "description")
"""Members of an error that may hold its message."""


def _plain(value: object) -> str:
    """Return a value of an error as plain text. A text may contain a JSON object, such as a provider's answer."""
    match value:
        case None:
            return ""
        case str():
            return _without_json(value.strip())
        case dict():
            members = cast("dict[str, object]", value)
            message = next((text for key in _MESSAGE_KEYS if (text := _plain(members.get(key)))), "")
            # The caller lists the login methods anyway.
            others = {key: _plain(each) for key, each in members.items() if key != "authMethods"}
            return message or "; ".join(f"{key}: {text}" for key, text in others.items() if text)
        case list():
            return "; ".join(filter(None, map(_plain, cast("list[object]", value))))
        case _:
            return msgspec.json.encode(value, enc_hook=str).decode()


def _without_json(text: str) -> str:
    start = text.find("{")
    if start < 0:
        return text
    try:
        found, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return text
    return f"{text[:start]}{_plain(found)}{text[end:]}" if found else text


def describe_login(agent: str, agent_message: str, ways: Sequence[str]) -> str:
    """Return the message for an agent that needs a login, with the agent's message and its login methods.

    The agent's lines are indented, so that none can pass for a login method.
    """
    start = f"{agent} needs a login{f': {agent_message}' if agent_message else ''}".replace("\n", "\n  ")
    if ways:
        return "\n- ".join((f"{start}\nit offers these methods:", *map(visible, ways)))
    return start if agent_message else f"{start}, and offers no login method; see its documentation"


def _describe_method(command: Sequence[str], method: v1.AuthMethod) -> str:
    text = f"{method.name}: {method.description}" if method.description else method.name
    if isinstance(method, v1.AuthMethodTerminal):
        return f"{text} (in a terminal, run {shlex.join([*command, *method.args])})"
    return f"{text} (await agent.authenticate({method.id!r}))"


def _quote_lines(printed: Sequence[str]) -> str:
    if not printed:
        return ""
    return "\nit printed:\n" + "\n".join(f"  {line}" for line in printed[:QUOTED_LINES])
