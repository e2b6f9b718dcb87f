"""Children: processes with a short environment and a session of their own, none of which outlives us."""

from dragoman.proc.child import STDIN_GRACE_S, TERM_GRACE_S, Child, ProcessExit
from dragoman.proc.command import EVERYTHING, INHERITED
from dragoman.proc.supervisor import Supervisor

__all__ = ["EVERYTHING", "INHERITED", "STDIN_GRACE_S", "TERM_GRACE_S", "Child", "ProcessExit", "Supervisor"]
