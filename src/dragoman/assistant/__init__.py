"""dragoman's own agent, built on the kit: models, tools, context, search and the agent file."""

from dragoman.assistant.assistant import ConfiguredModel, make_agent

__all__ = ["ConfiguredModel", "make_agent"]
