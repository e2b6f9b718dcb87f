"""Errors of the client, beside those of the wire.

ConnectFailed            the agent could not be connected to
├── NotAnAgent           … it does not speak ACP
├── StartTimeout         … it did not answer in time
└── WrongVersion         … it speaks another version of the protocol
NeedsLogin               the agent wants somebody to log in first
Refused                  we do not send this, because it would be wrong
├── MissingCapability    … the agent cannot do it, and said so
├── NotOffered           … the agent offers no such mode, option or way to log in
├── BadDirectory         … a directory begins with ~, or is no path
├── PromptRunning        … the session is busy with another prompt
└── SessionClosed        … the session was closed or deleted
CancelIgnored            the agent does not end a turn that was cancelled
TurnStopped              `ask` got an answer that is not whole
TurnTimeout              `run` cancelled a turn that took too long

A command that is not there is `StartError` or `CommandNotFound`, an agent that dies `ProcessDied`: see `errors`.
"""

import shlex
from collections.abc import Iterable, Sequence

from dragoman.errors import DragomanError, ProcessDied
from dragoman.protocol import v1

QUOTED_LINES = 5


class ConnectFailed(DragomanError):
    """An agent was started and could not be connected to."""

    def __init__(self, command: str, problem: str) -> None:
        self.command = command
        self.problem = problem
        super().__init__(f"{command} {problem}")


class NotAnAgent(ConnectFailed):
    """The program does not speak ACP: `printed` has its lines on stdout."""

    def __init__(
        self, command: str, problem: str, *, printed: Sequence[str] = (), died: ProcessDied | None = None
    ) -> None:
        self.printed = tuple(printed)
        self.exit_code = died.exit_code if died else None
        self.signal = died.signal if died else None
        self.stderr_tail = died.stderr_tail if died else ""
        step = "see that the command starts an ACP agent; many programs do so only with a flag, such as --acp or acp"
        super().__init__(command, f"{problem}{_quote_lines(printed)}\n{step}")


class StartTimeout(ConnectFailed):
    """The agent did not answer `initialize` in time."""

    def __init__(self, command: str, timeout_s: float, *, stderr_tail: str = "") -> None:
        self.timeout_s = timeout_s
        self.stderr_tail = stderr_tail
        said = f"; its stderr ends:\n{stderr_tail.strip()}" if stderr_tail.strip() else ""
        super().__init__(
            command,
            f"said nothing within {timeout_s:g} s of its start; if it is an ACP agent that needs longer, such as one "
            f"that is downloaded first, give connect a longer start_timeout_s{said}",
        )


class WrongVersion(ConnectFailed):
    """The agent speaks another version of the protocol."""

    def __init__(self, command: str, ours: int, theirs: int) -> None:
        self.ours = ours
        self.theirs = theirs
        older = "the agent" if theirs < ours else "dragoman"
        super().__init__(
            command, f"speaks version {theirs} of the protocol and we speak version {ours}; update {older}"
        )


class NeedsLogin(DragomanError):
    """The agent wants somebody to log in first; `methods` are its login methods, `said` its own words about them."""

    def __init__(self, command: Sequence[str], methods: Sequence[v1.AuthMethod], said: str = "") -> None:
        self.command = tuple(command)
        self.methods = tuple(methods)
        self.said = said
        super().__init__(describe_login(command[0], said, [_describe_method(command, method) for method in methods]))


class Refused(DragomanError):
    """A request that is not sent, because it would be wrong."""


class MissingCapability(Refused):
    """The agent did not advertise `capability`, which the request needs."""

    def __init__(self, capability: str, wanted: str, agent: str) -> None:
        self.capability = capability
        self.wanted = wanted
        self.agent = agent
        super().__init__(f"{wanted} needs {capability}, and {agent} does not have that capability")


class NotOffered(Refused):
    """The agent offers no such mode, option or method; `offered` has those that it does."""

    def __init__(self, noun: str, wanted: str, offered: Iterable[str]) -> None:
        self.wanted = wanted
        self.offered = tuple(offered)
        choices = f"expected one of {', '.join(self.offered)}" if self.offered else "it offers none"
        super().__init__(f"the agent has no {noun} {wanted!r}; {choices}")


class BadDirectory(Refused):
    """A directory that cannot be sent to an agent."""

    def __init__(self, path: str) -> None:
        self.path = path
        if path.startswith("~"):
            problem = f"the directory {path!r} begins with ~, which only a shell expands; os.path.expanduser does it"
        else:
            problem = f"{path!r} is no directory; give a path, absolute or relative to the current directory"
        super().__init__(problem)


class PromptRunning(Refused):
    """The session is busy with a prompt: one at a time."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"session {session_id} is busy with another prompt; read that to its end, cancel it, or open another"
        )


class SessionClosed(Refused):
    """The session was closed, deleted, or opened anew."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id} is closed here; load or resume it to go on")


class CancelIgnored(DragomanError):
    """The agent goes on with a turn that was cancelled."""

    def __init__(self, session_id: str, timeout_s: float) -> None:
        self.session_id = session_id
        self.timeout_s = timeout_s
        super().__init__(
            f"session {session_id} was cancelled, and the agent has not ended its turn within {timeout_s:g} s; "
            "open another session, or leave the connection, which stops the agent"
        )


class TurnStopped(DragomanError):
    """A turn ended for another reason than being done; `text` is the answer until then."""

    def __init__(self, stop_reason: str, text: str) -> None:
        self.stop_reason = stop_reason
        self.text = text
        super().__init__(
            f"the turn did not come to its end: {_REASONS.get(stop_reason, f'stopped with {stop_reason!r}')}"
        )


class TurnTimeout(DragomanError):
    """A turn took longer than `timeout_s` and was cancelled; its cause, if any, is how that went wrong."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        super().__init__(
            f"the turn took longer than {timeout_s:g} s and was cancelled; the result has what came until then: "
            "give it a longer timeout_s to let the agent finish"
        )


_REASONS = {
    "cancelled": "it was cancelled",
    "refusal": "the agent refused to go on",
    "max_tokens": "the model reached its limit of tokens",
    "max_turn_requests": "the agent reached its limit of requests to the model",
}


def describe_login(agent: str, said: str, ways: Sequence[str]) -> str:
    """Return the message for an agent that needs a login, with its own words and its login methods."""
    start = f"{agent} needs a login{f': {said}' if said else ''}"
    if ways:
        return "\n- ".join((f"{start}\nit offers these ways:", *ways))
    return start if said else f"{start}, and offers no way to; see its own manual"


def _describe_method(command: Sequence[str], method: v1.AuthMethod) -> str:
    words = f"{method.name}: {method.description}" if method.description else method.name
    if isinstance(method, v1.AuthMethodTerminal):
        return f"{words} (in a terminal, run {shlex.join([*command, *method.args])})"
    return f"{words} (await agent.authenticate({method.id!r}))"


def _quote_lines(printed: Sequence[str]) -> str:
    if not printed:
        return ""
    return "\nit printed:\n" + "\n".join(f"  {line}" for line in printed[:QUOTED_LINES])
