"""Runs the tool calls of a reply: announces, prepares, decides and finishes each."""

import asyncio
from collections.abc import Mapping, Sequence

from dragoman.agent.turns.prepared_call import PreparedCall, ToolError, ToolOutcome
from dragoman.agent.turns.tool_call import ToolCallHandle
from dragoman.agent.turns.turn import Turn
from dragoman.assistant.models.message import ToolResult, ToolUse
from dragoman.assistant.tools.tool import Tool
from dragoman.text.match import near_matches

MAX_NAMED = 40
"""The most tools listed for a model that asked for an unknown one."""


class ToolCallRunner:
    """Runs the calls of one turn. Reading calls run in parallel, and results keep their order."""

    def __init__(self, turn: Turn) -> None:
        self.tools: Mapping[str, Tool] = {}
        """The tools last sent to the model."""
        self._turn = turn

    async def announce(self, call_id: str, name: str) -> None:
        """Announce a call whose arguments are still incomplete or cannot be used."""
        await self._handle(call_id, name).announce()

    async def run(self, uses: Sequence[ToolUse]) -> list[ToolResult]:
        """Run all calls and return their results in order."""
        results: dict[str, ToolResult] = {}
        reading: list[tuple[ToolUse, ToolCallHandle, PreparedCall]] = []
        for use in uses:
            call = self._handle(use.id, use.name)
            prepared = await self._prepare(use, call)
            if isinstance(prepared, PreparedCall) and prepared.reads_only and prepared.inside:
                reading.append((use, call, prepared))
                continue
            results |= await self._run_together(reading)
            reading = []
            if isinstance(prepared, PreparedCall):
                outcome = await call.run(prepared, again=lambda use=use: self._find(use).prepare(use.arguments))
            else:
                outcome = prepared
            results[use.id] = _result(use, outcome)
        results |= await self._run_together(reading)
        return [results[use.id] for use in uses]

    def _handle(self, call_id: str, name: str) -> ToolCallHandle:
        """Return the call announced under this id, or a new one."""
        known = self._turn.calls.find(call_id)
        if known is not None:
            return known
        tool = self.tools.get(name)
        title, kind = (tool.title, tool.kind) if tool else (name, "other")
        return self._turn.tool(title, kind=kind, name=name, asks=True, call_id=call_id)

    async def _prepare(self, use: ToolUse, call: ToolCallHandle) -> PreparedCall | ToolOutcome:
        try:
            prepared = await self._find(use).prepare(use.arguments)
        except ToolError as failure:
            return await call.end(ToolOutcome(str(failure), failed=True), raw_input=use.arguments)
        await call.propose(prepared, raw_input=use.arguments)
        return prepared

    def _find(self, use: ToolUse) -> Tool:
        tool = self.tools.get(use.name)
        if tool is None:
            raise ToolError(f"no tool here is named {use.name}; {_known(use.name, list(self.tools))}")
        if use.problem is not None:
            raise ToolError(use.problem)
        return tool

    async def _run_together(
        self, calls: Sequence[tuple[ToolUse, ToolCallHandle, PreparedCall]]
    ) -> dict[str, ToolResult]:
        try:
            async with asyncio.TaskGroup() as tasks:
                running = {use.id: (use, tasks.create_task(call.execute(prepared))) for use, call, prepared in calls}
        except BaseExceptionGroup as failures:
            # Raise the first error, as without the group.
            raise failures.exceptions[0] from None
        return {call_id: _result(use, task.result()) for call_id, (use, task) in running.items()}


def _result(use: ToolUse, outcome: ToolOutcome) -> ToolResult:
    return ToolResult(use.id, outcome.text, failed=outcome.failed, attachments=list(outcome.attachments))


def _known(name: str, tools: Sequence[str]) -> str:
    """List the tools. If there are very many, list those with similar names."""
    if len(tools) <= MAX_NAMED:
        return f"the tools are: {', '.join(tools) or 'none'}"
    near = near_matches(name, tools, count=MAX_NAMED, cutoff=0.4)
    return f"of {len(tools):,} tools, these have a name like it: {', '.join(near) or 'none'}"
