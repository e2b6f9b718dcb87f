"""The judge, and its memory of an agent across connections."""

from dragoman.check.judge.judge import Judge
from dragoman.check.judge.session import INVENTED, AgentMemory

__all__ = ["INVENTED", "AgentMemory", "Judge"]
