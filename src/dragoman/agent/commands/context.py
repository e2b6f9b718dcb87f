"""The commands for what goes to the model: `/context`, `/include` and `/exclude`."""

from dragoman.agent.commands.command import SlashCommand
from dragoman.agent.session import Session


async def _context(session: Session, words: str) -> str:
    del words
    return session.context.report()


async def _include(session: Session, words: str) -> str:
    answer = session.context.include(words)
    session.keep_included()
    return answer


async def _exclude(session: Session, words: str) -> str:
    answer = session.context.exclude(words)
    session.keep_included()
    return answer


CONTEXT_COMMANDS = (
    SlashCommand("context", "Show what went to the model in the last turn, and why", _context),
    SlashCommand("include", "Add a tool, a server, a rule or a reference to what the model gets", _include, "NAME"),
    SlashCommand("exclude", "Take back what /include has added", _exclude, "NAME"),
)
