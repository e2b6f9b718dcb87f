"""Asks at the first prompt whether to use a project's own agent file and skills, and stores the answer."""

import asyncio
from pathlib import Path

from dragoman.agent.turns.prepared_call import ProposedCall, ToolOutcome, code
from dragoman.agent.turns.turn import Turn
from dragoman.assistant.profile import TrustStoreError, describe_unused_keys
from dragoman.assistant.session import AssistantSession
from dragoman.protocol import v1
from dragoman.protocol.permission_options import USE_AGENT_FILE, USE_SKILLS
from dragoman.text import visible

OPTIONS = [
    v1.PermissionOption(option_id="allow_once", name="Use it in this session", kind="allow_once"),
    v1.PermissionOption(option_id="allow_always", name="Use it until it changes", kind="allow_always"),
    v1.PermissionOption(option_id="reject_once", name="Ignore it in this session", kind="reject_once"),
    v1.PermissionOption(option_id="reject_always", name="Ignore it until it changes", kind="reject_always"),
]


async def ask_for_trust(turn: Turn) -> None:
    """Ask about a pending agent file or skills, and apply them if the user agrees.

    A cancelled question is asked again with the next prompt. Raises UnknownModelError, ModelError or
    MissingVariableError for an approved file, or LogError.
    """
    own: AssistantSession = turn.session.extra
    found = own.pending
    if found is None or found.place is None:
        return
    changes = "\n".join(f"- {change}" for change in own.pending_changes)
    path = visible(str(found.place))
    proposal = ProposedCall(
        f"Use {path}",
        "other",
        content=[code(f"{path} would change this session:\n{changes}")],  # Markdown could hide a word
        locations=[v1.ToolCallLocation(path=str(found.place))],
    )
    call = turn.tool(proposal.title, name=USE_AGENT_FILE if found.origin == "project" else USE_SKILLS)
    await call.propose(proposal)
    async with call:
        answer = await call.choose(OPTIONS)
        allowed = answer in ("allow_once", "allow_always")
        if answer in ("allow_always", "reject_always"):
            await _remember(own, found.place, found.digest, allowed=allowed)
        own.pending = None
        await call.end(ToolOutcome("", raw_output={"optionId": answer}, failed=not allowed))
    if allowed:
        await own.use_profile(found)
        if unused := describe_unused_keys(found.understood):
            turn.session.notice_later(f"{path} is used. {unused}")
    else:
        turn.session.notice_later(f"{path} is not used in this session.")


async def _remember(own: AssistantSession, path: Path, digest: str, *, allowed: bool) -> None:
    try:
        await asyncio.to_thread(own.setup.trust.remember, path, digest, allowed=allowed)
    except TrustStoreError as failure:
        own.session.notice_later(str(failure))
