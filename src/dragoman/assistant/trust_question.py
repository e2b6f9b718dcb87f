"""Asking whether a project's own agent file may count, at the first prompt, and remembering the answer."""

import asyncio
import uuid
from pathlib import Path

from dragoman.assistant.profile import TrustFailed, describe_unused_keys
from dragoman.assistant.session import Session
from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.permission_options import USE_AGENT_FILE
from dragoman.text import visible

OPTIONS = [
    v1.PermissionOption(option_id="allow_once", name="Use it in this session", kind="allow_once"),
    v1.PermissionOption(option_id="allow_always", name="Use it until it changes", kind="allow_always"),
    v1.PermissionOption(option_id="reject_once", name="Ignore it in this session", kind="reject_once"),
    v1.PermissionOption(option_id="reject_always", name="Ignore it until it changes", kind="reject_always"),
]


async def ask_for_trust(session: Session) -> None:
    """Ask about the agent file that waits, if one does, and let it count when the person agrees.

    A question that was cancelled is asked again with the next prompt. Raises UnknownModel, ModelFailure and
    MissingVariable of a file that was agreed to, and LogFailed.
    """
    found = session.pending
    if found is None or found.path is None:
        return
    call_id = f"profile-{uuid.uuid4()}"
    changes = "\n".join(f"- {change}" for change in session.pending_changes)
    path = visible(str(found.path))
    content = v1.Content(content=v1.TextContent(text=f"{path} wants to be this session's agent file:\n{changes}"))
    call = v1.ToolCall(
        tool_call_id=call_id,
        title=f"Use {path}",
        name=USE_AGENT_FILE,
        kind="other",
        status="pending",
        content=[content],
        locations=[v1.ToolCallLocation(path=str(found.path))],
    )
    try:
        await session.updates.send(call)
        answer = await _ask(session, call)
        allowed = answer in ("allow_once", "allow_always")
        if answer in ("allow_always", "reject_always"):
            await _remember(session, found.path, found.digest, allowed=allowed)
    except BaseException:
        session.updates.put(v1.ToolCallProgress(tool_call_id=call_id, status="failed"))
        raise
    session.pending = None
    status: v1.ToolCallStatus = "completed" if allowed else "failed"
    session.updates.put(v1.ToolCallProgress(tool_call_id=call_id, status=status, raw_output={"optionId": answer}))
    if allowed:
        await session.use_profile(found)
        if left := describe_unused_keys(found.understood):
            session.notices.append(f"{found.path} counts. {left}")
    else:
        session.notices.append(f"{found.path} is not used in this session.")


async def _remember(session: Session, path: Path, digest: str, *, allowed: bool) -> None:
    try:
        await asyncio.to_thread(session.trust.remember, path, digest, allowed=allowed)
    except TrustFailed as failure:
        session.notices.append(str(failure))


async def _ask(session: Session, call: v1.ToolCall) -> str | None:
    request = v1.ToolCallUpdate(
        tool_call_id=call.tool_call_id,
        title=call.title,
        name=call.name,
        kind=call.kind,
        content=call.content,
        locations=call.locations,
    )
    try:
        answer = await session.ask_permission(request, OPTIONS)
    except (ConnectionClosed, RemoteError, InvalidResult):
        return None
    return answer.outcome.option_id if isinstance(answer.outcome, v1.SelectedPermissionOutcome) else None
