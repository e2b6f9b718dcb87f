"""A conversation at a terminal. The user types, the agent works, and each can interrupt the other."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from types import FrameType

from dragoman.cli.chat.background import (
    AgentAsks,
    AgentThread,
    Interrupted,
    SessionOpener,
    TurnEnded,
    TurnEvents,
    answer,
)
from dragoman.cli.chat.entry import PromptInput, fill_in
from dragoman.cli.chat.local import START, LocalCommands, complete
from dragoman.cli.chat.mentions import link_mentions
from dragoman.cli.chat.unprompted import UnpromptedWork
from dragoman.cli.chat.view import MARK, TurnView, note
from dragoman.cli.failure import explain
from dragoman.cli.session_options import find_option
from dragoman.cli.terminal.input_line import InputLine
from dragoman.cli.terminal.keys import ESCAPE, WAIT_S, Keyboard
from dragoman.cli.terminal.permission import PermissionChoice, answer_row, find_choices, find_refusal, question_rows
from dragoman.cli.terminal.screen import Screen
from dragoman.client import Elicitation, Session
from dragoman.client.events import TurnFinished
from dragoman.client.policies import PermissionQuestion
from dragoman.errors import DragomanError, ProcessDiedError
from dragoman.protocol import v1
from dragoman.text import clean_text, one_line, visible


class UserLeftError(Exception):
    """The user wants to leave."""


class ChatConversation:
    """A conversation of one user with one agent, in one session at a time."""

    def __init__(
        self, background: AgentThread, opener: SessionOpener, screen: Screen, history: Path, *, colour: bool
    ) -> None:
        self.background = background
        self.opener = opener
        self.screen = screen
        self.view = TurnView(screen)
        self.session: Session
        self.images: list[v1.ImageContent] = []
        self._keys = Keyboard()
        self._local = LocalCommands(self)
        self._entry = PromptInput(history, lambda line, word: complete(self, line, word), colour=colour)
        self._line = InputLine()
        self._unprompted = UnpromptedWork(self.view, lambda: self.session.events_between_turns)
        self._interrupts = 0

    def enter(self, session: Session) -> None:
        """Switch to a session and show its history."""
        self.session = session
        agent = self.background.agent
        option = find_option(session, "model")
        facts = [agent.name, option.current if option else "", one_line(session.title or ""), visible(session.cwd)]
        self.screen.begin_block()
        note(self.screen, one_line(" · ".join(filter(None, facts))))
        if session.history:
            for event in session.history:
                self.view.show(event)
            self.view.finish()
            self.screen.begin_block()
            note(self.screen, "Earlier in this conversation:")
        elif option is not None and option.current == "guide":
            self._introduce_guide()

    def _introduce_guide(self) -> None:
        """Explain that no language model is connected, and suggest prompts that work without one."""
        agent = self.background.agent
        methods = (agent.capabilities.meta or {}).get(START)
        if not methods:
            return
        place = {"cwd": self.session.cwd, "sessionId": self.session.id}
        introduction = self.background.call(agent.call_extension(methods["introduce"], place))
        note(self.screen, clean_text(str(introduction["words"])))
        note(self.screen, f"Try: {one_line(' · '.join(introduction['prompts']))}")
        note(self.screen, ":connect sets up a language model")

    def run(self) -> None:
        """Chat until the user leaves. Raises DragomanError when the agent ends."""
        note(self.screen, ":help lists the commands, Ctrl-D exits")
        try:
            while True:
                self._unprompted.show_all()
                text = self._read()
                if text.strip():
                    self._unprompted.show_all()
                    self._handle(text)
        except (UserLeftError, EOFError):
            self.view.pause()

    def leave(self) -> None:
        """End the conversation."""
        raise UserLeftError

    def note(self, text: str, style: str = "dim") -> None:
        """Show a note from dragoman, not from the agent."""
        note(self.screen, text, style)

    def ask(self, question: str) -> str:
        """Return one line from the user, without adding it to the history. Raises EOFError."""
        return self._entry.read_answer(question)

    def prompt(self, text: str) -> None:
        """Send a prompt to the agent and show the turn to its end."""
        blocks = [v1.TextContent(text=text), *link_mentions(self.opener.cwd, text), *self.images]
        self.images = []
        self.screen.is_fresh = False
        with self._keys.quiet(), self._interruptible():
            self.view.begin_turn()
            self.background.start_turn(self.session, blocks)
            try:
                self._follow()
            except BaseException:
                self.view.finish()
                raise

    def _read(self) -> str:
        self.screen.begin_block()
        interrupted = False
        while True:
            count = len(self.images)
            attached = f"[{count} image{'s' if count > 1 else ''}] " if count else ""
            try:
                with self._line.showing(self._unprompted):
                    return self._entry.read(f"{attached}{MARK}")
            except KeyboardInterrupt:
                print()
                if interrupted:
                    raise UserLeftError from None
                interrupted = True
                self.note("press Ctrl-C again to exit")

    def _handle(self, text: str) -> None:
        self.screen.is_fresh = False
        try:
            if not self._local.run(text):
                self.prompt(text)
        except ProcessDiedError:
            raise
        except KeyboardInterrupt:
            self.note("interrupted")
        except DragomanError as error:
            self.screen.begin_block()
            note(self.screen, clean_text(explain(error, is_own=self.background.is_own)), "red")

    def _follow(self) -> None:
        done: TurnFinished | None = None
        while True:
            match self._next():
                case None:
                    self.view.draw()
                case TurnEvents(events, proceed):
                    for event in events:
                        self.view.show(event)
                        done = event if isinstance(event, TurnFinished) else done
                    self.view.draw(is_over=done is not None)
                    proceed()
                case AgentAsks() as asks:
                    self._ask(asks)
                case Interrupted():
                    self._interrupt()
                case TurnEnded(error):
                    self.view.finish(done, self.session)
                    if error is not None:
                        raise error
                    return

    def _next(self) -> TurnEvents | AgentAsks | TurnEnded | Interrupted | None:
        try:
            return self.background.inbox.get(timeout=WAIT_S)
        except Empty:
            return None

    def _interrupt(self) -> None:
        if self._interrupts > 1:
            raise UserLeftError
        self.background.cancel(self.session)
        self.view.mark_cancelled()
        self.view.pause()
        self.note("cancelling; press Ctrl-C again to exit", "yellow")

    def _ask(self, asks: AgentAsks) -> None:
        if asks.answer.cancelled():
            return
        self.view.pause()
        self.screen.begin_block()
        if isinstance(asks.question, Elicitation):
            self._fill_in(asks, asks.question)
        else:
            self._ask_permission(asks, asks.question)

    def _ask_permission(self, asks: AgentAsks, question: PermissionQuestion) -> None:
        choices = find_choices(question)
        self._keys.drop_pending()
        self.screen.add(question_rows(question, choices, self.screen.width))
        self.view.mark_shown(question.tool_call.tool_call_id)
        while not asks.answer.cancelled() and not self._interrupts:
            key = self._keys.read()
            choice = find_refusal(question, choices) if key == ESCAPE else _find_choice(choices, key)
            if choice is not None:
                self.screen.add([answer_row(choice)])
                self.screen.begin_block()
                answer(asks, choice.decision)
                return

    def _fill_in(self, asks: AgentAsks, elicitation: Elicitation) -> None:
        with self._keys.loud():
            answer(asks, fill_in(elicitation, self._entry.read_answer, self.note))

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        """Turn Ctrl-C into an inbox item, so that it does not raise in the middle of a row."""
        self._interrupts = 0

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            self._interrupts += 1
            self.background.inbox.put(Interrupted())

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _find_choice(choices: list[PermissionChoice], key: str) -> PermissionChoice | None:
    return next((choice for choice in choices if key and key.lower() in choice.keys), None)
