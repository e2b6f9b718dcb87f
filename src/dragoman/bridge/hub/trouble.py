"""Why the agent is not there, for people and for programs."""

from typing import Any

import msgspec

from dragoman.errors import ConnectionClosed, ProcessDied


class Trouble(msgspec.Struct, frozen=True):
    """What happened to the agent."""

    reason: str
    exit_code: int | None = None
    signal: int | None = None
    stderr: str = ""

    def data(self) -> dict[str, Any]:
        """What an error answer tells of it."""
        told: dict[str, Any] = {"problem": self.reason}
        if self.exit_code is not None:
            told["exitCode"] = self.exit_code
        if self.signal is not None:
            told["signal"] = self.signal
        if self.stderr:
            told["stderr"] = self.stderr
        return told


def silence(method: str, session_id: str | None, silence_s: float) -> Trouble:
    """Tell of an agent that gives no sign while it should open a session."""
    about = f" of session {session_id}" if session_id else ""
    return Trouble(
        f"the agent has not answered {method}{about} and has sent nothing for {silence_s:g} s; "
        "if it answers after all, the session can be opened then; else start the agent again"
    )


def death(died: ConnectionClosed, *, during: str = "") -> Trouble:
    """Tell of an agent whose output ended."""
    if not isinstance(died, ProcessDied):
        return Trouble(f"the agent closed the connection{during}: {died.reason}")
    if died.signal is not None:
        how = f"was killed by signal {died.signal}"
    elif died.exit_code is not None:
        how = f"exited with code {died.exit_code}"
    else:
        how = "closed its output"
    return Trouble(f"the agent {how}{during}", died.exit_code, died.signal, died.stderr_tail.strip())
