"""Shows the events of a turn on a terminal."""

import time

from dragoman.cli.terminal.asides import aside_text, subagent_name
from dragoman.cli.terminal.markdown import Markdown, PlainText
from dragoman.cli.terminal.rows import Row, Span, wrap
from dragoman.cli.terminal.screen import Screen
from dragoman.cli.terminal.tool_calls import ended_rows, plan_rows, running_rows, with_output_of
from dragoman.client import Session, ToolCallState
from dragoman.client.events import (
    CompactionChanged,
    Event,
    MessageWithdrawn,
    ModeChanged,
    NonTextChunk,
    NoticeReceived,
    PlanChanged,
    SubagentEvent,
    TextChunk,
    ThoughtChunk,
    ToolCallChanged,
    TurnFinished,
    UserTextChunk,
)
from dragoman.protocol import v1
from dragoman.text import TextCleaner, clean_text, one_line
from dragoman.text.width import cut

MARK = "❯ "  # noqa: RUF001 -- looks like the prompt of a shell
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
MAX_THOUGHT_CHARS = 200_000
"""Limit of the thoughts of one turn that are kept for `:thoughts`."""

_STOPS = {
    "max_tokens": "stopped: the model reached its token limit",
    "max_turn_requests": "stopped: the turn reached its request limit",
    "refusal": "the agent declined the prompt",
    "cancelled": "cancelled",
}


class TurnView:
    """Shows the events of a session as they arrive."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.thoughts = ""
        self._block = ""
        self._renderer = Markdown()
        self._cleaner = TextCleaner()
        self._thought = ""
        self._notice = ""
        """A notice that may still be replaced."""
        self._running: dict[str, ToolCallState] = {}
        self._is_cancelled = False
        self._diffs_shown: set[str] = set()
        self._plan: tuple[v1.PlanEntry, ...] = ()
        self._began = time.monotonic()

    def begin_turn(self) -> None:
        """Prepare the view for a new turn."""
        self._began = time.monotonic()
        self._is_cancelled = False
        self.thoughts = ""
        self.draw()

    def show(self, event: Event) -> None:
        """Show an event. `draw` draws the live rows."""
        match event:
            case TextChunk(text):
                self._say(text, "agent")
            case UserTextChunk(text):
                self._say(text, "user")
            case ThoughtChunk(text):
                self._think(text)
            case NonTextChunk(block, role) if role != "thought":
                self._enter("content")
                self.screen.add([[Span(f"[{_describe(block)}]", "dim")]])
            case ToolCallChanged(call):
                self._change(call)
            case PlanChanged(entries):
                self._plan = entries
            case SubagentEvent(subagent, TextChunk(text)):
                self._say(text, f"subagent {subagent_name(subagent)}")
            case _:
                self._show_event(event)

    def _show_event(self, event: Event) -> None:
        """Show an event that is not part of the conversation, if it has something to say."""
        match event:
            case ModeChanged(mode_id):
                text = f"mode: {one_line(mode_id)}"
            case NoticeReceived(_, title, description):
                text = clean_text("\n".join(filter(None, (title, description))))
                if event.key is not None:
                    self._enter(f"notice {event.key}")
                    self._notice = text
                    return
            case CompactionChanged(compaction) if compaction.status == "completed":
                text = f"the conversation was summarized:\n{clean_text(compaction.text)}".rstrip(":\n")
            case MessageWithdrawn():
                text = "the text above is discarded: the agent starts this part of its answer again"
            case _:
                text = aside_text(event)
        if text is not None:
            self._enter("note")
            note(self.screen, text)

    def mark_shown(self, call_id: str) -> None:
        """Remember that a permission question already showed the diffs of this call."""
        self._diffs_shown.add(call_id)

    def mark_cancelled(self) -> None:
        """Remember that the user cancelled. A running tool call may then end without its output."""
        self._is_cancelled = True

    def pause(self) -> None:
        """Finish the current block and remove the live rows before other rows are printed."""
        self._enter("")
        self.screen.set_live([])

    def draw(self, *, is_over: bool = False) -> None:
        """Draw the live rows: the unfinished line, thoughts, running tool calls, the plan and the time."""
        width = self.screen.width
        rows = self._renderer.partial(width)
        spinner = SPINNER[int(time.monotonic() * 10) % len(SPINNER)]
        if self._thought:
            text = cut(one_line(clean_text(self._thought[-4 * width :]))[-(width - 14) :], width - 14)
            rows = [*rows, [Span(f"✻ Thinking: {text}", "dim")]]
        if self._notice:
            rows = [*rows, *note_rows(self._notice, width)]
        for call in self._running.values():
            rows += running_rows(call, spinner, width)
        if self._plan and not is_over:
            rows += [[], *plan_rows(self._plan, width)]
        if not is_over:
            seconds = int(time.monotonic() - self._began)
            rows = [*rows, [Span(cut(f"{spinner} {seconds} s · Ctrl-C cancels", width), "dim")]]
        self.screen.set_live(rows)

    def finish(self, done: TurnFinished | None = None, session: Session | None = None) -> None:
        """End the turn and print its live rows for good."""
        self._enter("end")
        self.screen.set_live([])
        width = self.screen.width
        for call in self._running.values():
            self.screen.add(ended_rows(call, width))
        self._running.clear()
        if self._plan:
            self.screen.begin_block()
            self.screen.add(plan_rows(self._plan, width))
            self._plan = ()
        if done is not None:
            self._conclude(done, session)
        self._block = ""

    def _conclude(self, done: TurnFinished, session: Session | None) -> None:
        self.screen.begin_block()
        if done.stop_reason != "end_turn":
            summary = _STOPS.get(done.stop_reason, f"stopped: {one_line(done.stop_reason)}")
            self.screen.add([[Span(summary, "yellow")]])
        summary = " · ".join([*usage_parts(session, done.usage), f"{time.monotonic() - self._began:.1f} s"])
        self.screen.add([[Span(cut(summary, self.screen.width), "dim")]])

    def _say(self, text: str, who: str) -> None:
        if self._block != who:
            self._enter(who)
            text = text.lstrip("\n")
            self._renderer = Markdown()
            if who == "user":
                self._renderer = PlainText()
                text = f"{MARK}{text}"
            elif who != "agent":
                note(self.screen, f"{who}:")
        self.screen.add(self._renderer.feed(self._cleaner.feed(text), self.screen.width))

    def _think(self, text: str) -> None:
        if self._block != "thought":
            self._enter("thought")
            self.thoughts += "\n\n" if self.thoughts else ""
        text = self._cleaner.feed(text)
        self._thought += text
        self.thoughts = (self.thoughts + text)[-MAX_THOUGHT_CHARS:]

    def _change(self, call: ToolCallState) -> None:
        if not call.is_over:
            if call.tool_call_id not in self._running and self._block != "tool":
                self._enter("tool")
            self._running[call.tool_call_id] = call
            return
        before = self._running.pop(call.tool_call_id, None)
        if before is not None and self._is_cancelled:
            call = with_output_of(before, call)
        if before is not None or self._block != "tool" or not self.screen.is_fresh:
            self._enter("tool")
        self.screen.add(ended_rows(call, self.screen.width, with_diff=call.tool_call_id not in self._diffs_shown))

    def _enter(self, block: str) -> None:
        """Start a block of another kind, below an empty row."""
        if block == self._block:
            return
        self.screen.add(self._renderer.finish(self.screen.width))
        self._cleaner = TextCleaner()
        if self._thought.strip():
            first = one_line(clean_text(self._thought))
            room = self.screen.width - len("✻ Thought: ") - len("  :thoughts")
            row: Row = [Span(f"✻ Thought: {cut(first, max(room, 8))}", "dim italic"), Span("  :thoughts", "dim")]
            self.screen.add([row])
        if self._notice:
            note(self.screen, self._notice)
        self._thought = self._notice = ""
        self._block = block
        if block:
            self.screen.begin_block()


def usage_parts(session: Session | None, usage: v1.Usage | None) -> list[str]:
    """Return the token counts of a turn and the size of the context as short texts."""
    parts: list[str] = []
    if usage is not None:
        parts.append(f"{_count(usage.input_tokens)} in, {_count(usage.output_tokens)} out")
    whole = session.usage if session is not None else None
    if whole is not None and whole.size:
        parts.append(f"context {_count(whole.used)} of {_count(whole.size)} ({100 * whole.used // whole.size}%)")
    if whole is not None and whole.cost is not None:
        parts.append(f"{whole.cost.amount:.2f} {one_line(whole.cost.currency)}")
    return parts


def note(screen: Screen, text: str, style: str = "dim") -> None:
    """Print a note from dragoman, dim by default."""
    screen.add(note_rows(text, screen.width, style))


def note_rows(text: str, width: int, style: str = "dim") -> list[Row]:
    """Return the rows of a note."""
    return [
        row
        for line in text.split("\n")
        for row in wrap([Span(line.lstrip(), style)], width, line[: len(line) - len(line.lstrip())])
    ]


def _describe(block: v1.ContentBlock) -> str:
    match block:
        case v1.ImageContent():
            return f"image, {one_line(block.mime_type)}"
        case v1.AudioContent():
            return f"audio, {one_line(block.mime_type)}"
        case v1.ResourceLink():
            return one_line(f"{block.title or block.name}: {block.uri}")
        case v1.EmbeddedResource():
            return one_line(f"resource: {block.resource.uri}")
        case _:
            return "content of an unknown type"


def _count(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"
