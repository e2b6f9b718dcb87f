"""The checker, which judges any ACP agent or client by its messages on the wire.

Pytest imports this package at every start because of its plugin. Each name is therefore imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.check.conversation import ConversationEntry, RecordedConversation, Side
    from dragoman.check.judge import AgentMemory, Judge
    from dragoman.check.results import (
        CheckerFailure,
        CheckReport,
        Evidence,
        Finding,
        Result,
        Verdict,
        VerdictCounts,
        count_verdicts,
        find_evidence,
        make_report,
    )
    from dragoman.check.rule import Level, Rule
    from dragoman.check.rules import AREAS, RULES

__all__ = [
    "AREAS",
    "RULES",
    "AgentMemory",
    "CheckReport",
    "CheckerFailure",
    "ConversationEntry",
    "Evidence",
    "Finding",
    "Judge",
    "Level",
    "RecordedConversation",
    "Result",
    "Rule",
    "Side",
    "Verdict",
    "VerdictCounts",
    "count_verdicts",
    "find_evidence",
    "make_report",
]

_MODULES = ("conversation", "judge", "results", "rule", "rules")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
