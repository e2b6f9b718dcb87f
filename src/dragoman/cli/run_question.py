"""A question in the terminal: what the agent wants to do, whole, and one key for the answer."""

import asyncio
import json
import os
import sys
import termios
import tty
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from dragoman.cli.diff import hunk_lines
from dragoman.cli.permission_choice import Choice, find_choices, find_refusal
from dragoman.cli.run_screen import Screen
from dragoman.client import Decision, Foreign, Question, Read, Run, Write
from dragoman.client.deed import Single, resolve_path, singles
from dragoman.protocol import v1
from dragoman.text import visible

MAX_LINE = 76
"""Characters of the choices in one line, in a terminal of 80 columns."""

_END = "\x04"
_OUTSIDE = ", outside of the session's directories"


def has_person() -> bool:
    """Tell whether there is a terminal to ask in, and to be answered from."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Person:
    """Whoever sits at the terminal, asked one thing at a time."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._turn = asyncio.Lock()

    async def ask(self, question: Question) -> Decision:
        """Show what the agent wants to do and wait for a key of one of the choices."""
        choices = find_choices(question)
        async with self._turn:
            with _single_keys():
                self._screen.write_beside(f"{self._describe(question)}{_keys(choices)}: ")
                try:
                    choice = await self._choose(choices) or find_refusal(question, choices)
                except asyncio.CancelledError:
                    self._screen.write_beside("\n")
                    raise
                self._screen.write_beside(f"{choice.name}\n")
        return choice.decision

    async def _choose(self, choices: list[Choice]) -> Choice | None:
        while True:
            key = (await _read(sys.stdin.fileno())).lower()
            if key in ("", _END):
                return None
            for choice in choices:
                if key in choice.keys:
                    return choice

    def _describe(self, question: Question) -> str:
        lines = [f"May it? {visible(question.tool_call.title)}"]
        for deed in singles(question.deed):
            lines.extend(f"  {line}" for line in self._lines(deed, question))
        return "\n".join(lines) + "\n"

    def _lines(self, deed: Single, question: Question) -> Iterator[str]:
        match deed:
            case Run(command, cwd):
                yield from (f"$ {visible(line, lines=True)}" for line in command.split("\n"))
                if cwd is not None and cwd != question.cwd:
                    yield f"in {visible(cwd)}"
            case Write(path, root):
                yield f"writes {visible(path)}{'' if root else _OUTSIDE}"
                yield from self._diff(path, question)
            case Read(path, root):
                yield f"reads {visible(path)}{'' if root else _OUTSIDE}"
            case Foreign(_, raw_input):
                if raw_input is not None:
                    yield visible(json.dumps(raw_input, ensure_ascii=False, default=str))

    def _diff(self, path: str, question: Question) -> Iterator[str]:
        for item in question.tool_call.content:
            if isinstance(item, v1.Diff) and resolve_path(os.path.join(question.cwd, item.path)) == path:  # noqa: PTH118 -- texts, as deeds have them
                for line in hunk_lines(item):
                    yield self._diff_line(visible(line, lines=True))

    def _diff_line(self, line: str) -> str:
        match line[:1]:
            case "+":
                return self._screen.green(line)
            case "-":
                return self._screen.red(line)
            case _:
                return line


def _keys(choices: list[Choice]) -> str:
    """Return the choices in one line if they fit, else one below the other."""
    listed = [f"[{'/'.join(choice.keys)}] {choice.name}" for choice in choices]
    in_one = "  ".join(listed)
    return in_one if len(in_one) <= MAX_LINE else "\n".join(listed) + "\n"


@contextmanager
def _single_keys() -> Generator[None]:
    """Let each key come at once; what was typed before the question was seen is no answer to it."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def _read(descriptor: int) -> str:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
        return os.read(descriptor, 1).decode(errors="replace")
    except OSError:
        return ""
    finally:
        loop.remove_reader(descriptor)
