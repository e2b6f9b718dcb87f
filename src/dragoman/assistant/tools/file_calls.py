"""Calls that read or rewrite a file.

Reading is free inside the session's directories, and a matter of approval outside of them. Rewriting is shown as a
diff, approved by its path, and done only if nothing has changed meanwhile.
"""

from collections.abc import Awaitable, Callable, Sequence

from dragoman.agent.prepared_call import Action, PreparedCall, ShowProgress, ToolFailure, ToolOutcome
from dragoman.agent.workspace.workspace import MAX_FILE_BYTES, ResolvedPath, Workspace
from dragoman.assistant.models.model import ToolDefinition
from dragoman.assistant.tools.arguments import Arguments, make_schema
from dragoman.protocol import v1


class ReadingTool:
    """A tool that reads files: inside the session's directories without asking, outside of them if that is allowed."""

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
        """Make the call; raises ToolFailure for a target outside when asking is not allowed.

        `by` is part of the approved action: listing a directory differs from a search through all that is below it.
        """

        async def run(_: ShowProgress) -> ToolOutcome:
            return await read()

        async def check() -> None:
            await self._workspace.check(target)

        locations = [v1.ToolCallLocation(path=target.path, line=line)]
        if target.inside:  # nothing was approved that could have changed, and the boundary holds by itself
            return PreparedCall(title, self.kind, run=run, reads_only=True, locations=locations)
        if not self._ask_outside_reads:
            raise ToolFailure(
                f"{target.given} is outside the session's directories, and reading there is not allowed here; "
                "use a path inside, or ask the person to add that directory to the session"
            )
        action = Action("read", target.path, by)
        return PreparedCall(title, self.kind, run=run, check=check, inside=False, action=action, locations=locations)


WHOLE_DIFF_CHARS = 256 * 1024
"""Up to here a diff has both texts whole; beyond, the lines that differ: it is sent twice, and logged."""

CONTEXT_LINES = 3


async def find_to_write(workspace: Workspace, path: str) -> ResolvedPath:
    """Follow a path that is to be written; raises ToolFailure, also when it leads outside."""
    target = await workspace.find(path)
    if not target.inside:
        raise ToolFailure(
            f"{path} is outside the session's directories ({', '.join(workspace.roots)}) and cannot be written; "
            "use a path inside, or ask the person to add that directory to the session"
        )
    return target


def rewriting(
    workspace: Workspace,
    verb: str,
    target: ResolvedPath,
    old: str | None,
    new: str,
    *,
    words: str,
    lines: Sequence[int] = (),
) -> PreparedCall:
    """Make the call; raises ToolFailure when the new text is too large."""
    size = len(new.encode())
    if size > MAX_FILE_BYTES:
        raise ToolFailure(f"the text has {size:,} bytes; the limit is {MAX_FILE_BYTES:,}: write it in parts")
    diff = make_diff(target.path, old, new)

    async def check() -> None:
        await workspace.check_text(target, expected=old)

    async def run(_: ShowProgress) -> ToolOutcome:
        await workspace.write_text(target, new, expected=old)
        return ToolOutcome(words, [diff])

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
    """Return a diff that a client can show: of the whole file, or of the part that differs when that is large."""
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
    """Split text into lines with their ends, at newlines alone: `str.splitlines` knows more kinds than editors do."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])
