"""The judge, and what it remembers between connections."""

from dragoman.check.judge.judge import Judge
from dragoman.check.judge.session import INVENTED, Memory

__all__ = ["INVENTED", "Judge", "Memory"]
