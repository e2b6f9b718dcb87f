"""All commands of a session: those that every session has, and the prompts of its MCP servers."""

import re
from collections.abc import Sequence
from pathlib import Path

from dragoman.assistant.commands.command import ContinueWithModel, SlashCommand
from dragoman.assistant.commands.prompts import prompt_commands
from dragoman.assistant.commands.servers import SERVER_COMMANDS
from dragoman.assistant.commands.session_commands import CONTEXT_COMMANDS, OWN_COMMANDS
from dragoman.assistant.prompt_words import first_words, unwrap
from dragoman.assistant.session import Session
from dragoman.errors import DragomanError, InvalidParams
from dragoman.protocol import v1

_COMMAND = re.compile(r"/([\w:.-]+)(?:\s+(.*))?\s*\Z", re.DOTALL)
_NAME = re.compile(r"/[A-Za-z][\w:.-]*")
_PROMPT = re.compile(r"/[\w.-]+:[\w.-]")


def all_commands() -> "CommandRegistry":
    """Return the commands of this agent."""
    return CommandRegistry([*OWN_COMMANDS, *SERVER_COMMANDS, *CONTEXT_COMMANDS])


class CommandRegistry:
    """The commands of an agent, by name."""

    def __init__(self, commands: Sequence[SlashCommand]) -> None:
        listed = SlashCommand("help", "Show what can be asked for", self._help)
        self._commands = {command.name: command for command in (listed, *commands)}

    def update(self, session: Session) -> v1.AvailableCommandsUpdate:
        """Return the list of commands for a client."""
        return v1.AvailableCommandsUpdate(
            available_commands=[
                v1.AvailableCommand(
                    name=command.name,
                    description=command.description,
                    input=v1.UnstructuredCommandInput(hint=command.hint) if command.hint else None,
                )
                for command in self._all(session).values()
            ]
        )

    def find(self, session: Session, blocks: Sequence[v1.ContentBlock]) -> tuple[SlashCommand, str] | None:
        """Return the command that a prompt begins with, and its arguments; None for an ordinary prompt."""
        found = _COMMAND.match(first_words(blocks).strip())
        command = self._all(session).get(found[1]) if found else None
        return (command, (found[2] or "").strip()) if found and command else None

    def unknown(self, session: Session, blocks: Sequence[v1.ContentBlock]) -> str | None:
        """Return the answer to a prompt that is only the name of an unknown command; None for other prompts."""
        texts = [block.text.strip() for block in unwrap(blocks) if isinstance(block, v1.TextContent)]
        text = texts[0] if len(texts) == 1 else ""
        if not _NAME.fullmatch(text) or text[1:] in self._all(session) or Path(text).exists():
            return None
        return f"There is no command `{text}`; `/help` lists them."

    def names_command(self, session: Session, blocks: Sequence[v1.ContentBlock]) -> bool:
        """Say whether a prompt is a command, or nothing but the name of one that there is not."""
        return self.find(session, blocks) is not None or self.unknown(session, blocks) is not None

    def _all(self, session: Session) -> dict[str, SlashCommand]:
        return {**{command.name: command for command in prompt_commands(session)}, **self._commands}

    async def _help(self, session: Session, words: str) -> str:
        del words
        rows = [
            f"- `/{command.name}{f' {command.hint}' if command.hint else ''}`: {command.description}"
            for command in self._all(session).values()
        ]
        return "\n".join(rows)


def names_prompt(blocks: Sequence[v1.ContentBlock]) -> bool:
    """Say whether a prompt begins like the name of a server's prompt, which is known once the server is ready."""
    return bool(_PROMPT.match(first_words(blocks).lstrip()))


async def run_command(command: SlashCommand, session: Session, words: str) -> str | ContinueWithModel:
    """Run a command and return its answer; a refusal is an answer too."""
    try:
        return await command.run(session, words)
    except InvalidParams as refusal:
        return refusal.problem
    except DragomanError as refusal:
        return str(refusal)
