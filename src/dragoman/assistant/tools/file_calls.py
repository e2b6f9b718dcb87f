"""Calls that read or rewrite a file.

Reading inside the session's directories needs no approval, but outside it does. A rewrite is shown as a diff, approved
by path, and done only if the file has not changed since.
"""

from collections.abc import Awaitable, Callable, Sequence

from dragoman.agent.turns.prepared_call import Action, PreparedCall, ShowProgress, ToolError, ToolOutcome
from dragoman.agent.workspace.workspace import MAX_FILE_BYTES, ResolvedPath, Workspace
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, make_schema
from dragoman.protocol import v1


class ReadingTool:
    """A tool that reads files, freely inside the session's directories, and outside if that is allowed."""

    title: str
    kind: v1.ToolKind = "read"
    name: str
    description: str
    arguments: type[Arguments]

    def __init__(self, workspace: Workspace, *, ask_outside_reads: bool) -> None:
        self.definition = ToolDefinition(self.name, self.description, make_schema(self.arguments))
        self._workspace = workspace
        self._ask_outside_reads = ask_outside_reads

    def _reading(
        self,
        title: str,
        target: ResolvedPath,
        read: Callable[[], Awaitable[ToolOutcome]],
        *,
        line: int | None = None,
        by: str = "",
    ) -> PreparedCall:
        """Prepare the call. Raises ToolError for a target outside if asking is not allowed.

        `by` is part of the approved action, because listing a directory differs from searching everything below it.
        """

        async def run(_: ShowProgress) -> ToolOutcome:
            return await read()

        async def check() -> None:
            await self._workspace.check(target)

        locations = [v1.ToolCallLocation(path=target.path, line=line)]
        if target.inside:  # nothing was approved that could have changed, and the boundary itself holds
            return PreparedCall(title, self.kind, run=run, reads_only=True, locations=locations)
        if not self._ask_outside_reads:
            raise ToolError(
                f"{target.given} is outside the session's directories, and reading there is not allowed here; "
                "use a path inside, or ask the user to add that directory to the session"
            )
        action = Action("read", target.path, by)
        return PreparedCall(title, self.kind, run=run, check=check, inside=False, action=action, locations=locations)


WHOLE_DIFF_CHARS = 256 * 1024
"""Up to this size a diff has both texts completely. Beyond it has only the changed lines, because it is sent and
logged."""

CONTEXT_LINES = 3


async def find_to_write(workspace: Workspace, path: str) -> ResolvedPath:
    """Resolve a path to write. Raises ToolError, for example if it is outside."""
    target = await workspace.find(path)
    if not target.inside:
        raise ToolError(
            f"{path} is outside the session's directories ({', '.join(workspace.roots)}) and cannot be written; "
            "use a path inside, or ask the user to add that directory to the session"
        )
    return target


def rewriting(
    workspace: Workspace,
    verb: str,
    target: ResolvedPath,
    old: str | None,
    new: str,
    *,
    summary: str,
    lines: Sequence[int] = (),
) -> PreparedCall:
    """Prepare the call. Raises ToolError if the new text is too large."""
    size = len(new.encode())
    if size > MAX_FILE_BYTES:
        raise ToolError(f"the text has {size:,} bytes; the limit is {MAX_FILE_BYTES:,}: write it in parts")
    diff = make_diff(target.path, old, new)

    async def check() -> None:
        await workspace.check_text(target, expected=old)

    async def run(_: ShowProgress) -> ToolOutcome:
        await workspace.write_text(target, new, expected=old)
        return ToolOutcome(summary, [diff])

    return PreparedCall(
        f"{verb} {workspace.show(target.path)}",
        "edit",
        run=run,
        check=check,
        action=Action("write", target.path),
        always_asks=target.active,
        locations=[v1.ToolCallLocation(path=target.path, line=line) for line in lines or [None]],
        content=[diff],
    )


def make_diff(path: str, old: str | None, new: str) -> v1.Diff:
    """Return a diff for the client: of the whole file, or of the changed part of a large one."""
    if old is None or len(old) + len(new) <= WHOLE_DIFF_CHARS:
        return v1.Diff(path=path, old_text=old, new_text=new)
    before, after = split_lines(old), split_lines(new)
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    end = next((i for i in range(shorter - start) if before[-1 - i] != after[-1 - i]), shorter - start)
    start, end = max(start - CONTEXT_LINES, 0), max(end - CONTEXT_LINES, 0)
    return v1.Diff(
        path=path,
        old_text="".join(before[start : len(before) - end]),
        new_text="".join(after[start : len(after) - end]),
    )


def split_lines(text: str) -> list[str]:
    """Split a text only at newlines, and keep them. `str.splitlines` splits at more characters than editors do."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])
