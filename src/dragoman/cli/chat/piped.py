"""A conversation without a terminal: a prompt a line comes in, and the answers go out as they were written."""

from queue import Empty
from typing import TextIO

from dragoman.cli.chat.background import AgentAsks, AgentThread, TurnEnded, TurnEvents
from dragoman.cli.chat.local import is_quit
from dragoman.cli.terminal.asides import aside_words
from dragoman.cli.terminal.screen import AnswerOutput, SettledText
from dragoman.client import Asked, Done, Event, Noticed, Session, Text, ToolChanged
from dragoman.protocol import v1
from dragoman.text import one_line


class PipedChat:
    """Reads prompts from stdin; answers go to stdout, tool calls and notices to stderr. Nothing is allowed."""

    def __init__(self, background: AgentThread, session: Session) -> None:
        self._background = background
        self._session = session
        self._output = AnswerOutput()
        self._settled = SettledText(holds=background.agent.withdraws)

    def run(self, lines: TextIO) -> None:
        """Give the agent one line after the other; raises DragomanError when a turn fails."""
        for line in lines:
            text = line.rstrip("\n")
            if is_quit(text):
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
            if isinstance(item, TurnEvents):
                for event in item.events:
                    self._show(event)
                item.proceed()
            elif isinstance(item, TurnEnded):
                self._end_answer()
                if item.error is not None:
                    raise item.error
                return
            elif isinstance(item, AgentAsks):
                item.answer.cancel()

    def _show(self, event: Event) -> None:
        self._output.say(self._settled.take(event, event.text if isinstance(event, Text) else ""))
        match event:
            case Noticed(_, title, description):
                detail = f"\n{description}" if description else ""
                self._output.aside(f"[{one_line(title)}]{detail}")
            case ToolChanged(call) if call.is_over:
                self._output.aside(f"[{call.status}: {one_line(call.title)}]")
            case Asked(question):
                self._output.aside(f"[denied, because there is nobody to ask: {one_line(question.tool_call.title)}]")
            case Done(stop_reason) if stop_reason != "end_turn":
                self._output.aside(f"[{one_line(stop_reason)}]")
            case _:
                if (words := aside_words(event)) is not None:
                    self._output.aside(f"[{words}]")

    def _end_answer(self) -> None:
        self._output.say(self._settled.finish())
        self._output.end_answer()
