"""Child processes, each with a short environment and its own session. None of them outlives us."""

from dragoman.proc.child import STDIN_GRACE_S, Child, ProcessExit
from dragoman.proc.command import EVERYTHING
from dragoman.proc.supervisor import Supervisor

__all__ = ["EVERYTHING", "STDIN_GRACE_S", "Child", "ProcessExit", "Supervisor"]
