"""The context: which tools, rules and references go to the model, and why. For people: `docs/context.md`.

`candidates` has the tools, rules and references that may be chosen, with the names and mentions by which people call
them, and the selection of a turn; `context` chooses and searches, and `report` shows it.
"""

from dragoman.assistant.context.candidates import ToolOffer
from dragoman.assistant.context.context import ModelContext

__all__ = ["ModelContext", "ToolOffer"]
