"""The context: what is sent to the model, and why. User guide: `docs/agent-file.md`.

`candidates` has the tools, rules, references and skills, their names and mentions, and the selection of a turn.
`context` chooses and searches. `report` shows the result.
"""

from dragoman.assistant.context.candidates import ToolOffer
from dragoman.assistant.context.context import ModelContext

__all__ = ["ModelContext", "ToolOffer"]
