"""A chat without a terminal. Reads one prompt per line and writes the plain answers."""

from queue import Empty
from typing import TextIO

from dragoman.cli.chat.background import AgentAsks, AgentThread, TurnEnded, TurnEvents
from dragoman.cli.chat.local import is_quit
from dragoman.cli.terminal.asides import aside_text
from dragoman.cli.terminal.screen import AnswerOutput, SettledText
from dragoman.client import Session
from dragoman.client.events import Event, NoticeReceived, PermissionRequested, TextChunk, ToolCallChanged, TurnFinished
from dragoman.protocol import v1
from dragoman.text import one_line


class PipedChat:
    """Reads prompts from stdin. Answers go to stdout, tool calls and notices to stderr. Every permission is denied."""

    def __init__(self, background: AgentThread, session: Session) -> None:
        self._background = background
        self._session = session
        self._output = AnswerOutput()
        self._settled = SettledText(holds=background.agent.withdraws)

    def run(self, lines: TextIO) -> None:
        """Send each line as a prompt. Raises DragomanError when a turn fails."""
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
        self._output.say(self._settled.settle(event, event.text if isinstance(event, TextChunk) else ""))
        match event:
            case NoticeReceived(_, title, description):
                detail = f"\n{description}" if description else ""
                self._output.aside(f"[{one_line(title)}]{detail}")
            case ToolCallChanged(call) if call.is_over:
                self._output.aside(f"[{call.status}: {one_line(call.title)}]")
            case PermissionRequested(question):
                self._output.aside(f"[denied, because no user can be asked: {one_line(question.tool_call.title)}]")
            case TurnFinished(stop_reason) if stop_reason != "end_turn":
                self._output.aside(f"[{one_line(stop_reason)}]")
            case _:
                if (text := aside_text(event)) is not None:
                    self._output.aside(f"[{text}]")

    def _end_answer(self) -> None:
        self._output.say(self._settled.finish())
        self._output.end_answer()
