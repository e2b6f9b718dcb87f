"""The prompts of MCP servers, as commands `/server:prompt`."""

import re
import shlex
from collections.abc import Iterator, Sequence

from dragoman.agent.commands.command import SlashCommand
from dragoman.agent.session import Session
from dragoman.agent.turn import Turn
from dragoman.errors import ServerFailure
from dragoman.mcp.info import PromptArgument, PromptInfo, PromptText
from dragoman.mcp.server import ServerConnection
from dragoman.protocol import v1
from dragoman.text import one_line

MAX_SHOWN = 500
"""Letters of a prompt's description, and of the hint at its arguments."""

_FOREIGN = re.compile(r"[^\w.-]+")


def prompt_commands(session: Session) -> Iterator[SlashCommand]:
    """Yield a command for every prompt of every server that is ready."""
    timeout_s = session.mcp.call_timeout_s
    taken: dict[str, int] = {}
    for member in session.mcp.servers.members():
        for prompt in member.server.prompts:
            name = f"{_FOREIGN.sub('-', member.name)}:{_FOREIGN.sub('-', prompt.name)}"
            taken[name] = taken.get(name, 0) + 1
            told_apart = name if taken[name] == 1 else f"{name}-{taken[name]}"
            yield _command(told_apart, member.server, prompt, timeout_s)


def _command(name: str, server: ServerConnection, prompt: PromptInfo, timeout_s: float | None) -> SlashCommand:
    async def run(turn: Turn) -> None:
        arguments = read_arguments(prompt.arguments, turn.arguments)
        messages = await server.prompt(prompt.name, arguments, timeout_s=timeout_s)
        turn.prompt = _question(messages)
        turn.mcp_prompt = messages

    hint = one_line(" ".join(_shown(argument) for argument in prompt.arguments), MAX_SHOWN)
    description = one_line(prompt.description or prompt.title, MAX_SHOWN) or f"A prompt of {server.name}"
    return SlashCommand(name, description, run, hint or None, goes_on=True)


def _shown(argument: PromptArgument) -> str:
    return argument.name if argument.required else f"[{argument.name}]"


def read_arguments(wanted: Sequence[PromptArgument], words: str) -> dict[str, str]:
    """Read `name=value` pairs and values in their order, the last of which may be many words; raises ServerFailure."""
    names = [argument.name for argument in wanted]
    given: dict[str, str] = {}
    plain: list[str] = []
    for word in _split(words):
        name, equals, value = word.partition("=")
        if equals and name in names:
            given[name] = value
        else:
            plain.append(word)
    free = [name for name in names if name not in given]
    if plain and not free:
        raise ServerFailure(f"{' '.join(plain)!r} is too much; expected {_usage(wanted)}")
    for position, name in enumerate(free[: len(plain)]):
        is_last = position == len(free) - 1
        given[name] = " ".join(plain[position:]) if is_last else plain[position]
    missing = [argument.name for argument in wanted if argument.required and argument.name not in given]
    if missing:
        raise ServerFailure(f"{', '.join(missing)} must be given; expected {_usage(wanted)}")
    return given


def _usage(wanted: Sequence[PromptArgument]) -> str:
    return " ".join(_shown(argument) for argument in wanted) or "nothing behind the name"


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError:
        return words.split()


def _question(messages: Sequence[PromptText]) -> list[v1.ContentBlock]:
    """Return the last messages of the person, which are the prompt of the turn; raises ServerFailure."""
    asked: list[v1.ContentBlock] = []
    for message in reversed(messages):
        if message.role != "user":
            break
        asked.insert(0, message.content)
    if not asked:
        raise ServerFailure("the prompt that the server gave ends without a question for the model")
    return asked
