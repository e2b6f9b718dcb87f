"""When a tool, a rule or a reference is put before the model."""

from typing import Literal

Include = Literal["always", "manual", "agent"]
"""`always`: in every turn. `manual`: once a person has added it. `agent`: when the search finds it for the prompt."""
