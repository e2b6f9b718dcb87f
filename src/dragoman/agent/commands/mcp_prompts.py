"""The prompts of MCP servers as commands `/server:prompt`.

Characters that a command cannot contain become `-`. If several prompts get the same command, an exact name
keeps it, and the others get a short hash of the server and prompt names as a suffix. A command therefore does not
depend on the order of servers and prompts, and stays the same after every load.
"""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dragoman.agent.commands.command import SlashCommand
from dragoman.agent.sessions.session import Session
from dragoman.agent.turns.turn import Turn
from dragoman.errors import McpServerError
from dragoman.mcp.info import PromptArgument, PromptInfo, PromptText
from dragoman.mcp.server import ServerConnection
from dragoman.protocol import v1
from dragoman.text import one_line

MAX_SHOWN = 500
"""The characters of a prompt's description and of the hint for its arguments."""

EXAMPLES_TIMEOUT_S = 5.0
MAX_EXAMPLES, MAX_EXAMPLE = 10, 60
"""The number of values that a server suggests for a missing argument, and the characters of each."""

_HASH_LETTERS = 6
_FOREIGN = re.compile(r"[^\w.-]+")


def prompt_commands(session: Session) -> Iterator[SlashCommand]:
    """Yield a command for every prompt of every ready server."""
    timeout_s = session.mcp.call_timeout_s
    prompts: dict[tuple[str, str], tuple[ServerConnection, PromptInfo]] = {}
    for member in session.mcp.servers.members():
        for prompt in member.server.prompts:
            prompts.setdefault((member.name, prompt.name), (member.server, prompt))
    for pair, name in name_prompts(prompts).items():
        yield _command(name, *prompts[pair], timeout_s)


def name_prompts(prompts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a unique command for each (server, prompt)."""
    commands = {pair: ":".join(_FOREIGN.sub("-", word) for word in pair) for pair in prompts}
    counted = Counter(commands.values())
    return {
        pair: name if counted[name] == 1 or name == ":".join(pair) else f"{name}-{_mark(pair)}"
        for pair, name in commands.items()
    }


def _mark(pair: tuple[str, str]) -> str:
    return hashlib.sha256("\0".join(pair).encode(errors="surrogatepass")).hexdigest()[:_HASH_LETTERS]


def _command(name: str, server: ServerConnection, prompt: PromptInfo, timeout_s: float | None) -> SlashCommand:
    async def run(turn: Turn) -> None:
        try:
            arguments = read_arguments(prompt.arguments, turn.arguments)
        except MissingArgumentsError as problem:
            raise McpServerError(f"{problem}{await _examples(server, prompt, problem.names[0])}") from None
        messages = await server.prompt(prompt.name, arguments, timeout_s=timeout_s)
        turn.prompt = _prompt_of(messages)
        turn.mcp_prompt = messages

    hint = one_line(" ".join(_shown(argument) for argument in prompt.arguments), MAX_SHOWN)
    description = one_line(prompt.description or prompt.title, MAX_SHOWN) or f"A prompt of {server.name}"
    return SlashCommand(name, description, run, hint or None, fills_prompt=True)


class MissingArgumentsError(McpServerError):
    """A required argument of a prompt is missing."""

    def __init__(self, names: Sequence[str], usage: str) -> None:
        self.names = names
        super().__init__(f"missing: {', '.join(names)}; expected {usage}")


async def _examples(server: ServerConnection, prompt: PromptInfo, argument: str) -> str:
    """Return values that the server suggests for an argument, as text. Return "" if there are none."""
    try:
        reference = {"type": "ref/prompt", "name": prompt.name}
        values = await server.complete(reference, argument, "", timeout_s=EXAMPLES_TIMEOUT_S)
    except McpServerError:
        return ""
    shown = ", ".join(one_line(value, MAX_EXAMPLE) for value in values[:MAX_EXAMPLES])
    return f"; values for {argument}: {shown}" if shown else ""


def _shown(argument: PromptArgument) -> str:
    return argument.name if argument.required else f"[{argument.name}]"


def read_arguments(expected: Sequence[PromptArgument], text: str) -> dict[str, str]:
    """Parse `name=value` pairs and positional values, of which the last may be many words. Raises McpServerError."""
    # Named values come first. The positional ones fill the remaining arguments in order, and the last takes the rest.
    names = [argument.name for argument in expected]
    arguments: dict[str, str] = {}
    plain: list[str] = []
    for word in _split(text):
        name, equals, value = word.partition("=")
        if equals and name in names:
            arguments[name] = value
        else:
            plain.append(word)
    free = [name for name in names if name not in arguments]
    if plain and not free:
        raise McpServerError(f"{' '.join(plain)!r} is not an argument; expected {_usage(expected)}")
    for position, name in enumerate(free[: len(plain)]):
        is_last = position == len(free) - 1
        arguments[name] = " ".join(plain[position:]) if is_last else plain[position]
    missing = [argument.name for argument in expected if argument.required and argument.name not in arguments]
    if missing:
        raise MissingArgumentsError(missing, _usage(expected))
    return arguments


def _usage(expected: Sequence[PromptArgument]) -> str:
    return " ".join(_shown(argument) for argument in expected) or "no arguments"


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _prompt_of(messages: Sequence[PromptText]) -> list[v1.ContentBlock]:
    """Return the last user messages, which become the prompt of the turn. Raises McpServerError."""
    asked: list[v1.ContentBlock] = []
    for message in reversed(messages):
        if message.role != "user":
            break
        asked.insert(0, message.content)
    if not asked:
        raise McpServerError("the server's prompt does not end with a user message, so there is nothing to answer")
    return asked
