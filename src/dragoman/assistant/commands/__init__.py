"""Slash commands: requests of the person to the agent itself, past the model.

A command has a name, a sentence, and a function from a session and the words behind the name to an answer in Markdown,
or to words for the model to go on with. The names go to the client, which offers them; a prompt that begins with one
runs it.
"""

from dragoman.assistant.commands.command import ContinueWithModel, SlashCommand
from dragoman.assistant.commands.registry import CommandRegistry, all_commands

__all__ = ["CommandRegistry", "ContinueWithModel", "SlashCommand", "all_commands"]
