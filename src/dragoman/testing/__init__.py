"""A scripted agent and a scripted client for tests of the other side."""

from dragoman.testing import steps
from dragoman.testing.agent import ScriptedAgent
from dragoman.testing.client import ScriptedClient
from dragoman.testing.steps import dump_turns, load_turns

__all__ = ["ScriptedAgent", "ScriptedClient", "dump_turns", "load_turns", "steps"]
