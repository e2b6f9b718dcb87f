"""The checker: judges any agent or client of ACP by what it says on the wire.

Pytest imports this package at every start, for its plugin: what is in it comes with its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.check.catalogue import AREAS, RULES
    from dragoman.check.conclude import report, show
    from dragoman.check.conversation import Conversation, Entry, Side
    from dragoman.check.finding import Evidence, Fault, Finding, Report, Result, Summary, Verdict, summarize
    from dragoman.check.judge import INVENTED, Judge, Memory
    from dragoman.check.rule import Level, Role, Rule

__all__ = [
    "AREAS",
    "INVENTED",
    "RULES",
    "Conversation",
    "Entry",
    "Evidence",
    "Fault",
    "Finding",
    "Judge",
    "Level",
    "Memory",
    "Report",
    "Result",
    "Role",
    "Rule",
    "Side",
    "Summary",
    "Verdict",
    "report",
    "show",
    "summarize",
]

_MODULES = ("catalogue", "conclude", "conversation", "finding", "judge", "rule")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
