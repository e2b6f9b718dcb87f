"""How a process ended."""

import os
import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: by itself with a code, or by a signal."""

    code: int | None = None
    signal: int | None = None

    @property
    def signal_name(self) -> str | None:
        """The name of the signal that ended it, such as SIGTERM."""
        if self.signal is None:
            return None
        try:
            return signal.Signals(self.signal).name
        except ValueError:
            return f"signal {self.signal}"


def decode_status(status: int) -> Exit:
    """Read a status as `waitpid` gives it."""
    code = os.waitstatus_to_exitcode(status)
    return Exit(code=code) if code >= 0 else Exit(signal=-code)
