"""The judge, and what it remembers between connections."""

from dragoman.check.judge.judge import Judge
from dragoman.check.judge.memory import INVENTED, Memory

__all__ = ["INVENTED", "Judge", "Memory"]
