"""The context: which tools, rules and references go to the model, and why. For people: `docs/context.md`.

`offer` is a tool that may be chosen and `guidance` a rule or a reference; `mentions` reads them out of a prompt,
`finder` looks for them, `names` knows them as people call them; `selection` is what was chosen for a turn, `context`
chooses, and `report` shows it.
"""

from dragoman.assistant.context.candidates import ToolOffer
from dragoman.assistant.context.context import ModelContext

__all__ = ["ModelContext", "ToolOffer"]
