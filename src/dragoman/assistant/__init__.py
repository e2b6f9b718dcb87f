"""The agent: sessions, turns and models, served to an ACP client."""

from dragoman.assistant.agent import Agent

__all__ = ["Agent"]
