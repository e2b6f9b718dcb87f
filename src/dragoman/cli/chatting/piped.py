"""A conversation without a terminal: a prompt a line comes in, and the answers go out as they were written."""

import sys
from queue import Empty
from typing import TextIO

from dragoman.cli.chatting.background import Asks, Background, Ended, Happened
from dragoman.cli.settled_text import SettledText
from dragoman.client import Asked, Done, Event, Noticed, Session, Text, ToolChanged
from dragoman.protocol import v1
from dragoman.text import TextCleaner, clean_text, one_line


class Piped:
    """Reads prompts from stdin; answers go to stdout, and what happens beside them to stderr. Nothing is allowed."""

    def __init__(self, background: Background, session: Session) -> None:
        self._background = background
        self._session = session
        self._said = TextCleaner()
        self._settled = SettledText(holds=background.agent.withdraws)
        self._last = "\n"

    def run(self, lines: TextIO) -> None:
        """Give the agent one line after the other; raises DragomanError when a turn fails."""
        for line in lines:
            text = line.rstrip("\n")
            if text.strip() == ":quit":
                return
            if text.strip():
                self._prompt(text)

    def _prompt(self, text: str) -> None:
        self._background.start_turn(self._session, [v1.TextContent(text=text)])
        while True:
            try:
                item = self._background.inbox.get(timeout=1)
            except Empty:
                continue
            if isinstance(item, Happened):
                for event in item.events:
                    self._show(event)
                item.proceed()
            elif isinstance(item, Ended):
                self._end_line()
                if item.error is not None:
                    raise item.error
                return
            elif isinstance(item, Asks):
                item.answer.cancel()

    def _show(self, event: Event) -> None:
        self._say(self._settled.take(event, event.text if isinstance(event, Text) else ""))
        match event:
            case Noticed(_, title, description):
                _aside(f"[{one_line(title)}]")
                if description:
                    _aside(clean_text(description))
            case ToolChanged(call) if call.is_over:
                _aside(f"[{call.status}: {one_line(call.title)}]")
            case Asked(question):
                _aside(f"[denied, for there is nobody to ask: {one_line(question.tool_call.title)}]")
            case Done(stop_reason) if stop_reason != "end_turn":
                _aside(f"[{one_line(stop_reason)}]")
            case _:
                pass

    def _say(self, text: str) -> None:
        text = self._said.feed(text)
        if text:
            self._last = text
            print(text, end="", flush=True)

    def _end_line(self) -> None:
        self._say(self._settled.finish())
        self._said = TextCleaner()
        if not self._last.endswith("\n"):
            print(flush=True)
        self._last = "\n"


def _aside(text: str) -> None:
    print(text, file=sys.stderr)
