"""The judge, and its memory of an agent between connections."""

from dragoman.check.judge.judge import Judge
from dragoman.check.judge.session import INVENTED, Memory

__all__ = ["INVENTED", "Judge", "Memory"]
