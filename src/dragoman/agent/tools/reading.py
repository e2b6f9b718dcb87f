"""A call that only reads: free inside the session's directories, a matter of approval outside of them."""

from collections.abc import Awaitable, Callable

from dragoman.agent.tools.tool import Action, PreparedCall, ShowProgress, ToolFailure, ToolOutcome
from dragoman.agent.workspace.workspace import ResolvedPath, Workspace
from dragoman.protocol import v1


def reading(
    workspace: Workspace,
    title: str,
    kind: v1.ToolKind,
    target: ResolvedPath,
    read: Callable[[], Awaitable[ToolOutcome]],
    *,
    line: int | None = None,
    by: str = "",
    ask_outside_reads: bool,
) -> PreparedCall:
    """Make the call; raises ToolFailure for a place outside that nobody may be asked about.

    `by` is part of what is approved: to list a directory is not to search through all that is below it.
    """

    async def run(_: ShowProgress) -> ToolOutcome:
        return await read()

    async def check() -> None:
        await workspace.check(target)

    locations = [v1.ToolCallLocation(path=target.path, line=line)]
    if target.inside:  # nothing was approved that could have changed, and the boundary holds by itself
        return PreparedCall(title, kind, run, reads_only=True, locations=locations)
    if not ask_outside_reads:
        raise ToolFailure(
            f"{target.given} is outside the session's directories, and reading there is not allowed here; "
            "use a path inside, or ask the person to add that directory to the session"
        )
    action = Action("read", target.path, by)
    return PreparedCall(title, kind, run, check, inside=False, action=action, locations=locations)
