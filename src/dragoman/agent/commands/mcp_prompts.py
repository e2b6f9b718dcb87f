"""The prompts of MCP servers, as commands `/server:prompt`.

Letters that no command can have become `-`. Of prompts whose commands would then be the same, the one that is written
so keeps the name, and the others end in some letters of a hash of their own names: so a command does not depend on the
order of servers and prompts, and is the same after every load.
"""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

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

EXAMPLES_TIMEOUT_S = 5.0
MAX_EXAMPLES, MAX_EXAMPLE = 10, 60
"""Values that a server suggests for an argument that is missing, and letters of each."""

_HASH_LETTERS = 6
_FOREIGN = re.compile(r"[^\w.-]+")


def prompt_commands(session: Session) -> Iterator[SlashCommand]:
    """Yield a command for every prompt of every server that is ready."""
    timeout_s = session.mcp.call_timeout_s
    prompts: dict[tuple[str, str], tuple[ServerConnection, PromptInfo]] = {}
    for member in session.mcp.servers.members():
        for prompt in member.server.prompts:
            prompts.setdefault((member.name, prompt.name), (member.server, prompt))
    for pair, name in name_prompts(prompts).items():
        yield _command(name, *prompts[pair], timeout_s)


def name_prompts(prompts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a command of its own for each (server, prompt)."""
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
        except MissingArguments as problem:
            raise ServerFailure(f"{problem}{await _examples(server, prompt, problem.names[0])}") from None
        messages = await server.prompt(prompt.name, arguments, timeout_s=timeout_s)
        turn.prompt = _question(messages)
        turn.mcp_prompt = messages

    hint = one_line(" ".join(_shown(argument) for argument in prompt.arguments), MAX_SHOWN)
    description = one_line(prompt.description or prompt.title, MAX_SHOWN) or f"A prompt of {server.name}"
    return SlashCommand(name, description, run, hint or None, goes_on=True)


class MissingArguments(ServerFailure):
    """A prompt was not given all that it needs."""

    def __init__(self, names: Sequence[str], usage: str) -> None:
        self.names = names
        super().__init__(f"{', '.join(names)} must be given; expected {usage}")


async def _examples(server: ServerConnection, prompt: PromptInfo, argument: str) -> str:
    """Return some values that the server suggests for an argument, in words; "" when it does not."""
    try:
        reference = {"type": "ref/prompt", "name": prompt.name}
        values = await server.complete(reference, argument, "", timeout_s=EXAMPLES_TIMEOUT_S)
    except ServerFailure:
        return ""
    shown = ", ".join(one_line(value, MAX_EXAMPLE) for value in values[:MAX_EXAMPLES])
    return f"; values for {argument}: {shown}" if shown else ""


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
        raise MissingArguments(missing, _usage(wanted))
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
