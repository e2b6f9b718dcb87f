"""The checker: judges any agent or client of ACP by its messages on the wire.

Pytest imports this package at every start, because of its plugin, so each name is imported at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.check.conversation import ConversationEntry, RecordedConversation, Side
    from dragoman.check.conversation import ConversationEntry as Entry
    from dragoman.check.conversation import RecordedConversation as Conversation
    from dragoman.check.judge import INVENTED, Judge, Memory
    from dragoman.check.results import (
        CheckReport,
        Evidence,
        Fault,
        Finding,
        Result,
        Verdict,
        VerdictCounts,
        report,
        show,
        summarize,
    )
    from dragoman.check.results import CheckReport as Report
    from dragoman.check.results import VerdictCounts as Summary
    from dragoman.check.rule import Level, Role, Rule
    from dragoman.check.rules import AREAS, RULES

__all__ = [
    "AREAS",
    "INVENTED",
    "RULES",
    "CheckReport",
    "Conversation",
    "ConversationEntry",
    "Entry",
    "Evidence",
    "Fault",
    "Finding",
    "Judge",
    "Level",
    "Memory",
    "RecordedConversation",
    "Report",
    "Result",
    "Role",
    "Rule",
    "Side",
    "Summary",
    "Verdict",
    "VerdictCounts",
    "report",
    "show",
    "summarize",
]

_MODULES = ("conversation", "judge", "results", "rule", "rules")

_FORMER_NAMES = {
    "Conversation": "RecordedConversation",
    "Entry": "ConversationEntry",
    "Report": "CheckReport",
    "Summary": "VerdictCounts",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        wanted = _FORMER_NAMES.get(name, name)
        for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
            if hasattr(module, wanted):
                return getattr(module, wanted)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
