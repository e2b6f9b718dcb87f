"""A conversation at a terminal: a person writes, the agent works, and each can interrupt the other."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from types import FrameType

from dragoman.cli.chatting.background import Asks, Background, Ended, Happened, Interrupted, answer
from dragoman.cli.chatting.entry import Entry
from dragoman.cli.chatting.form import fill_in
from dragoman.cli.chatting.keys import ESCAPE, WAIT_S, Keys
from dragoman.cli.chatting.local import LocalCommands, complete
from dragoman.cli.chatting.openings import Openings
from dragoman.cli.chatting.options import find_offer
from dragoman.cli.chatting.question import question_rows
from dragoman.cli.chatting.screen import Screen
from dragoman.cli.chatting.styled import Span
from dragoman.cli.chatting.view import MARK, View, note
from dragoman.cli.explanation import explain
from dragoman.cli.permission_choice import Choice, find_choices, find_refusal
from dragoman.client import Done, Elicitation, Question, Session
from dragoman.errors import DragomanError, ProcessDied
from dragoman.protocol import v1
from dragoman.text import clean_text, one_line


class Left(Exception):
    """The person wants to leave."""


class Conversation:
    """One person, one agent, one session at a time."""

    def __init__(
        self, background: Background, openings: Openings, screen: Screen, history: Path, *, colour: bool
    ) -> None:
        self.background = background
        self.openings = openings
        self.screen = screen
        self.view = View(screen)
        self.session: Session
        self.images: list[v1.ImageContent] = []
        self._keys = Keys()
        self._local = LocalCommands(self)
        self._entry = Entry(history, lambda line, word: complete(self, line, word), colour=colour)
        self._interrupts = 0

    def enter(self, session: Session) -> None:
        """Go on in a session, and show what was said in it before."""
        self.session = session
        agent = self.background.agent
        offer = find_offer(session, "model")
        words = [agent.name, offer.current if offer else "", one_line(session.title or ""), session.cwd]
        self.screen.begin_block()
        note(self.screen, one_line(" · ".join(filter(None, words))))
        if session.history:
            for event in session.history:
                self.view.show(event)
            self.view.finish()
            self.screen.begin_block()
            note(self.screen, "This was said before. Go on:")

    def run(self) -> None:
        """Talk until the person leaves; raises DragomanError when the agent is gone."""
        note(self.screen, ":help tells more, Ctrl-D leaves")
        try:
            while True:
                text = self._read()
                if text.strip():
                    self._handle(text)
        except (Left, EOFError):
            self.view.pause()

    def leave(self) -> None:
        """End the conversation."""
        raise Left

    def tell(self, text: str, style: str = "dim") -> None:
        """Say something of our own."""
        note(self.screen, text, style)

    def prompt(self, text: str) -> None:
        """Give the agent a prompt and show what it does, to the end."""
        blocks = [v1.TextContent(text=text), *self.images]
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
                return self._entry.read(f"{attached}{MARK}")
            except KeyboardInterrupt:
                print()
                if interrupted:
                    raise Left from None
                interrupted = True
                self.tell("Ctrl-C once more leaves")

    def _handle(self, text: str) -> None:
        self.screen.is_fresh = False
        try:
            if not self._local.run(text):
                self.prompt(text)
        except ProcessDied:
            raise
        except KeyboardInterrupt:
            self.tell("interrupted")
        except DragomanError as error:
            self.screen.begin_block()
            note(self.screen, clean_text(explain(error, is_own=self.background.is_own)), "red")

    def _follow(self) -> None:
        done: Done | None = None
        while True:
            match self._next():
                case None:
                    self.view.draw()
                case Happened(events, proceed):
                    for event in events:
                        self.view.show(event)
                        done = event if isinstance(event, Done) else done
                    self.view.draw(is_over=done is not None)
                    proceed()
                case Asks() as asks:
                    self._ask(asks)
                case Interrupted():
                    self._interrupt()
                case Ended(error):
                    self.view.finish(done, self.session)
                    if error is not None:
                        raise error
                    return

    def _next(self) -> Happened | Asks | Ended | Interrupted | None:
        try:
            return self.background.inbox.get(timeout=WAIT_S)
        except Empty:
            return None

    def _interrupt(self) -> None:
        if self._interrupts > 1:
            raise Left
        self.background.cancel(self.session)
        self.view.note_cancel()
        self.view.pause()
        self.tell("cancelling; Ctrl-C once more leaves", "yellow")

    def _ask(self, asks: Asks) -> None:
        if asks.answer.cancelled():
            return
        self.view.pause()
        self.screen.begin_block()
        if isinstance(asks.question, Elicitation):
            self._fill_in(asks, asks.question)
        else:
            self._ask_permission(asks, asks.question)

    def _ask_permission(self, asks: Asks, question: Question) -> None:
        choices = find_choices(question)
        self._keys.forget()
        self.screen.add(question_rows(question, choices, self.screen.width))
        self.view.note_question(question.tool_call.tool_call_id)
        while not asks.answer.cancelled() and not self._interrupts:
            key = self._keys.read()
            choice = find_refusal(question, choices) if key == ESCAPE else _find_choice(choices, key)
            if choice is not None:
                style = "green" if choice.decision.verdict == "allow" else "red"
                self.screen.add([[Span("┃ ", "yellow"), Span(f"→ {choice.name}", style)]])
                self.screen.begin_block()
                answer(asks, choice.decision)
                return

    def _fill_in(self, asks: Asks, elicitation: Elicitation) -> None:
        with self._keys.loud():
            answer(asks, fill_in(elicitation, self._entry.read_answer, self.tell))

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        """Take Ctrl-C as something that happens, not as an exception in the middle of a row."""
        self._interrupts = 0

        def interrupt(number: int, frame: FrameType | None) -> None:
            del number, frame
            self._interrupts += 1
            self.background.inbox.put(Interrupted())

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _find_choice(choices: list[Choice], key: str) -> Choice | None:
    return next((choice for choice in choices if key and key.lower() in choice.keys), None)


def has_colours() -> bool:
    """Tell whether the person wants colours."""
    return not os.environ.get("NO_COLOR")
