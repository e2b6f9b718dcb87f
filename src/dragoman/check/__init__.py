"""The checker: judges any agent or client of ACP by what it says on the wire.

Pytest imports this package at every start, because of its plugin, so each name is imported at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.check.conversation import Conversation, Entry, Side
    from dragoman.check.judge import INVENTED, Judge, Memory
    from dragoman.check.results import (
        Evidence,
        Fault,
        Finding,
        Report,
        Result,
        Summary,
        Verdict,
        report,
        show,
        summarize,
    )
    from dragoman.check.rule import Level, Role, Rule
    from dragoman.check.rules import AREAS, RULES

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

_MODULES = ("conversation", "judge", "results", "rule", "rules")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
