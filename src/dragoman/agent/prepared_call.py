"""A prepared tool call, the action that is approved with it, and the content of a call that the client is shown.

A call goes through four steps. `prepare` looks, without changing anything, and says what would happen: the title, the
places, the diff or the whole command, and the `Action` that a person would approve. The turn then decides or asks.
`check` looks again: when the world has changed meanwhile it raises `TargetChanged`, and the call is prepared, and if
need be asked, anew. `run` follows at once and does exactly what was prepared. Only then is the call `in_progress`, so
that no call goes back from there to a question: a later change still makes it fail.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import msgspec

from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.text import visible
from dragoman.text.fence import fenced


def code(text: str) -> v1.Content:
    """Show text as it is."""
    return words(fenced(text))


def words(text: str) -> v1.Content:
    """Show words of our own."""
    return v1.Content(content=v1.TextContent(text=text))


class Action(msgspec.Struct, frozen=True):
    """The exact effect that is approved, to which "always" is bound: a command and its directory, a path, a tool."""

    kind: Literal["command", "write", "read", "tool"]
    what: str
    """The full text of a command, the absolute path of a file, or the name of a tool."""
    where: str = ""
    """The directory that a command runs in, or the identity of the server that a tool belongs to."""


class ToolFailure(DragomanError):
    """The call failed; the message is for the model and the person alike."""


class TargetChanged(DragomanError):
    """The target of an approved call has changed since the approval."""


class ToolOutcome(msgspec.Struct, frozen=True):
    """The outcome of a call: words for the model, content for the client."""

    text: str
    content: Sequence[v1.ToolCallContent] = ()
    raw_output: Any = None
    failed: bool = False
    attachments: Sequence[v1.ContentBlock] = ()
    """Images, audio and resources for the model beside the words, if it can take them."""


ShowProgress = Callable[[Sequence[v1.ToolCallContent]], Awaitable[None]]
"""Shows the output of a running call so far."""


async def _nothing_to_check() -> None:
    pass


class ProposedCall(msgspec.Struct, frozen=True):
    """A call before its permission: all that there is to show and to approve."""

    title: str
    kind: v1.ToolKind
    reads_only: bool = False
    """Changes nothing and leaves nothing: it needs no question, and may run beside others."""
    inside: bool = True
    """Stays inside the session's directories."""
    action: Action | None = None
    """The action to approve; None for a call that needs no approval in any mode."""
    always_asks: bool = False
    """Whether it is asked about also in a mode that lets its like run, `all` aside."""
    can_be_kept: bool = True
    """Whether an approval for longer can be held to exactly this; if not, it is allowed once or not at all."""
    locations: Sequence[v1.ToolCallLocation] = ()
    verdict: Literal["ask", "allow", "deny"] | None = None
    """The verdict of the agent's own settings, in any mode."""
    content: Sequence[v1.ToolCallContent] = ()
    """The diff, or other content that shows the effect."""

    def __post_init__(self) -> None:
        """Write out invisible characters in the title: it names commands, paths and tools of others."""
        msgspec.structs.force_setattr(self, "title", visible(self.title))


class PreparedCall(ProposedCall, frozen=True, kw_only=True):
    """A call that is ready to run."""

    run: Callable[[ShowProgress], Awaitable[ToolOutcome]]
    """Runs it; raises ToolFailure, and TargetChanged when nothing was done because the check no longer holds."""
    check: Callable[[], Awaitable[None]] = _nothing_to_check
    """Looks again before it is run; raises TargetChanged when the preparation no longer holds, and ToolFailure."""
