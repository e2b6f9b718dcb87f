"""All commands of a session: the program's, its own, `/help` and `/mcp`, and the prompts of its MCP servers."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from dragoman.agent.commands.command import COMMAND_NAME, SlashCommand
from dragoman.agent.commands.mcp_command import MCP_COMMAND
from dragoman.agent.commands.mcp_prompts import prompt_commands
from dragoman.agent.sessions.session import Session
from dragoman.agent.turns.prompt_words import first_text, unwrap
from dragoman.agent.turns.turn import Turn
from dragoman.protocol import v1

_COMMAND = re.compile(rf"/({COMMAND_NAME.pattern})(?:\s+(.*))?\s*\Z", re.DOTALL)
_NAME = re.compile(r"/[A-Za-z][\w:.-]*")
_PROMPT = re.compile(r"/[\w.-]+:[\w.-]")


class CommandRegistry:
    """The commands of an agent by name. A command of the program replaces a built-in one of the same name."""

    def __init__(
        self, commands: Mapping[str, SlashCommand], of_session: Callable[[Session], Iterable[SlashCommand]]
    ) -> None:
        """Create a registry. `of_session` returns the commands of one session besides `commands`."""
        self._of_session = of_session
        own = {"help": SlashCommand("help", "List the commands", self._help)}
        self._commands = {**own, **commands}
        self._commands.setdefault(MCP_COMMAND.name, MCP_COMMAND)

    def update(self, session: Session) -> v1.AvailableCommandsUpdate:
        """Return the update that lists the commands for a client."""
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
        """Return the command that a prompt begins with and its arguments, or None for an ordinary prompt."""
        found = _COMMAND.match(first_text(blocks).strip())
        command = self._all(session).get(found[1]) if found else None
        return (command, (found[2] or "").strip()) if found and command else None

    def unknown(self, session: Session, blocks: Sequence[v1.ContentBlock]) -> str | None:
        """Return the answer to a prompt that is only an unknown command name, or None for any other prompt."""
        texts = [block.text.strip() for block in unwrap(blocks) if isinstance(block, v1.TextContent)]
        text = texts[0] if len(texts) == 1 else ""
        if not _NAME.fullmatch(text) or text[1:] in self._all(session) or Path(text).exists():
            return None
        return f"There is no command `{text}`; `/help` lists them."

    def names_command(self, session: Session, blocks: Sequence[v1.ContentBlock]) -> bool:
        """Return whether a prompt is a command, or only the name of an unknown one."""
        return self.find(session, blocks) is not None or self.unknown(session, blocks) is not None

    def _all(self, session: Session) -> dict[str, SlashCommand]:
        return {
            command.name: command for command in (*prompt_commands(session), *self._of_session(session))
        } | self._commands

    async def _help(self, turn: Turn) -> None:
        rows = [
            f"- `/{command.name}{f' {command.hint}' if command.hint else ''}`: {command.description}"
            for command in self._all(turn.session).values()
        ]
        await turn.say("\n".join(rows))


def names_prompt(blocks: Sequence[v1.ContentBlock]) -> bool:
    """Return whether a prompt begins like the command of a server's prompt, which exists once the server is ready."""
    return bool(_PROMPT.match(first_text(blocks).lstrip()))
