"""A prepared tool call, the action that is approved with it, and the content that the client sees.

A call has four steps. `prepare` changes nothing and describes the effect: the title, the locations, the diff or the
whole command, and the `Action` that the user would approve. The turn then decides or asks. `check` verifies that the
preparation still holds. If the target has changed, it raises `TargetChangedError`, and the call is prepared again and,
if necessary, approved again. `run` follows at once and does exactly the prepared work. Only then is the call
`in_progress`, so a running call never asks. A change after that makes it fail.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import msgspec

from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.text import visible
from dragoman.text.fence import fenced


def code(text: str) -> v1.Content:
    """Return content that shows a text unchanged, in a code fence."""
    return text_content(fenced(text))


def text_content(text: str) -> v1.Content:
    """Return content that shows a text as Markdown."""
    return v1.Content(content=v1.TextContent(text=text))


IN_SANDBOX = "sandbox "
"""The beginning of `Action.where` for a command in the sandbox, so that its approval does not apply outside."""


class Action(msgspec.Struct, frozen=True):
    """The effect that "always" covers: a command and its directory, all edits of a file, or all calls of a tool."""

    kind: Literal["command", "write", "read", "tool"]
    what: str
    """The full text of a command, the name of a tool, or the absolute paths of files separated by NUL."""
    where: str = ""
    """The directory of a command, the identity of a tool's server, or the kind of access to a file."""


class ToolError(DragomanError):
    """The call failed. The message is for both the model and the user."""


class TargetChangedError(DragomanError):
    """The target of an approved call has changed since the approval."""


class ToolOutcome(msgspec.Struct, frozen=True):
    """The outcome of a call: text for the model and content for the client."""

    text: str
    content: Sequence[v1.ToolCallContent] = ()
    raw_output: Any = None
    failed: bool = False
    attachments: Sequence[v1.ContentBlock] = ()
    """Images, audio and resources for the model, in addition to the text, if it supports them."""


ShowProgress = Callable[[Sequence[v1.ToolCallContent]], Awaitable[None]]
"""Shows the output of a running call so far."""


async def _nothing_to_check() -> None:
    pass


class ProposedCall(msgspec.Struct, frozen=True):
    """A call before its permission, with everything to show and to approve."""

    title: str
    kind: v1.ToolKind
    reads_only: bool = False
    """Whether the call changes nothing and leaves nothing behind. It then runs without asking, even in parallel."""
    inside: bool = True
    """Whether the call stays inside the session's directories."""
    action: Action | None = None
    """The action to approve. None for a call that never needs approval."""
    always_asks: bool = False
    """Whether the call asks even in a mode that allows similar calls, except `all`."""
    can_be_kept: bool = True
    """Whether "always" can be offered. It cannot if the call could do more than was shown."""
    locations: Sequence[v1.ToolCallLocation] = ()
    verdict: Literal["ask", "allow", "deny"] | None = None
    """The decision of the agent's own settings, in any mode."""
    content: Sequence[v1.ToolCallContent] = ()
    """The diff, or other content that shows the effect."""
    in_sandbox: bool = False
    """Whether the call is a command that runs in the sandbox. It then runs without asking where edits do."""

    def __post_init__(self) -> None:
        """Escape invisible characters in the title, because it contains foreign commands, paths and tool names."""
        msgspec.structs.force_setattr(self, "title", visible(self.title))


class PreparedCall(ProposedCall, frozen=True, kw_only=True):
    """A call that is ready to run."""

    run: Callable[[ShowProgress], Awaitable[ToolOutcome]]
    """Runs the call. Raises ToolError, and TargetChangedError if nothing was done because the target has changed."""
    check: Callable[[], Awaitable[None]] = _nothing_to_check
    """Verifies the preparation before the run. Raises TargetChangedError if it no longer holds, and ToolError."""
