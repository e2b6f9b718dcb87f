"""Slash commands: what a person can ask of the agent itself, past the model.

One small registry: a command has a name, a sentence, and a function from a session and the words behind the name to
an answer in Markdown. The names go to the client, which offers them; a prompt that begins with one runs it.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from dragoman.agent.compaction import compact
from dragoman.agent.session import Session
from dragoman.agent.settings import MODEL, MODES
from dragoman.errors import DragomanError, InvalidParams
from dragoman.protocol import v1

_COMMAND = re.compile(r"/([a-z][\w:-]*)(?:\s+(.*))?\s*\Z", re.DOTALL)


class Command(msgspec.Struct, frozen=True):
    """Something to be asked for by its name."""

    name: str
    description: str
    run: Callable[[Session, str], Awaitable[str]]
    hint: str | None = None
    """What may stand behind the name."""


class Commands:
    """The commands of an agent, by name."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands: Mapping[str, Command] = {command.name: command for command in commands}
        listed = Command("help", "Show what can be asked for", self._help)
        self._commands = {listed.name: listed, **self._commands}

    def update(self) -> v1.AvailableCommandsUpdate:
        """Tell a client what there is."""
        return v1.AvailableCommandsUpdate(
            available_commands=[
                v1.AvailableCommand(
                    name=command.name,
                    description=command.description,
                    input=v1.UnstructuredCommandInput(hint=command.hint) if command.hint else None,
                )
                for command in self._commands.values()
            ]
        )

    def find(self, blocks: Sequence[v1.ContentBlock]) -> tuple[Command, str] | None:
        """Return the command that a prompt begins with, and what stands behind it; None for an ordinary prompt."""
        if not blocks or not isinstance(blocks[0], v1.TextContent):
            return None
        found = _COMMAND.match(blocks[0].text.strip())
        command = self._commands.get(found[1]) if found else None
        return (command, (found[2] or "").strip()) if found and command else None

    async def _help(self, session: Session, words: str) -> str:
        del session, words
        rows = [
            f"- `/{command.name}{f' {command.hint}' if command.hint else ''}`: {command.description}"
            for command in self._commands.values()
        ]
        return "\n".join(rows)


async def run_command(command: Command, session: Session, words: str) -> str:
    """Run a command and return its answer; what it refuses is an answer too."""
    try:
        return await command.run(session, words)
    except InvalidParams as refusal:
        return refusal.problem
    except DragomanError as refusal:
        return str(refusal)


def own_commands() -> Commands:
    """Return the commands that every session has."""
    return Commands(
        [
            Command("compact", "Sum up the conversation, so that the model has room again", _compact),
            Command("mode", "Show or change the mode", _mode, "ask|code|plan"),
            Command("model", "Show or change the model", _model, "NAME"),
            Command("usage", "Show what the conversation has used", _usage),
        ]
    )


async def _compact(session: Session, words: str) -> str:
    del words
    before = len(session.messages)
    await compact(session)
    return f"The conversation so far, {before} messages, was summed up. The log keeps all of it."


async def _mode(session: Session, words: str) -> str:
    if not words:
        return "\n".join(
            f"- {'**' if mode == session.settings.mode else ''}{mode}{'**' if mode == session.settings.mode else ''}: "
            f"{MODES[mode].description}"
            for mode in session.choices.modes
        )
    await session.set_mode(session.choices.check_mode(words))
    return f"The mode is now {words}."


async def _model(session: Session, words: str) -> str:
    if not words:
        offered = ", ".join(session.choices.models)
        return f"This is {session.model.name}. Offered are {offered}; `/model NAME` takes any other, too."
    session.find_model(words)
    await session.set_option(MODEL, words)
    return f"The model is now {words}."


async def _usage(session: Session, words: str) -> str:
    del words
    spent, size = session.spent, session.model.context_size
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd is not None else ""
    context = f"{session.context_used:,} of {size:,} tokens ({100 * session.context_used // size} %)"
    return f"{spent.input:,} tokens in, {spent.output:,} out{cost}. The context holds {context}."
