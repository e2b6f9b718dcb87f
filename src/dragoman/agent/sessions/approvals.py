"""The user's decisions that apply to more than one call: in the session, or permanently in its project.

All sessions of a project share the permanent decisions. They are stored in `<home>/permissions/<encoded cwd>.json`, a
list of actions with `allow` or `reject` each. If sessions are in a database, the decisions are stored there, so that
they apply on every machine. An action is matched exactly: an approval of `make test` covers neither `make` nor another
directory.
"""

import asyncio
import logging
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from dragoman.agent.turns.prepared_call import Action
from dragoman.errors import LogError
from dragoman.files.private_file import PrivateFile
from dragoman.store import SharesApprovals, encode_cwd

ApprovalVerdict = Literal["allow", "reject"]


class Approval(msgspec.Struct, frozen=True):
    """One action and the decision about it."""

    action: Action
    decision: ApprovalVerdict


_log = logging.getLogger("dragoman.agent")
_decode = msgspec.json.Decoder(list[Approval]).decode


class ProjectApprovals(Protocol):
    """The permanent decisions of one project."""

    async def find(self, action: Action) -> ApprovalVerdict | None:
        """Return the decision about exactly this action, or None if there is none or it cannot be read."""
        ...

    async def keep(self, action: Action, decision: ApprovalVerdict) -> bool:
        """Store a decision. Return whether it was saved."""
        ...


class Approvals:
    """The decisions that apply in one session."""

    def __init__(self, project: ProjectApprovals) -> None:
        self._project = project
        self._session: dict[Action, ApprovalVerdict] = {}

    async def find(self, action: Action) -> ApprovalVerdict | None:
        """Return the decision about exactly this action, or None."""
        decided = self._session.get(action)
        return decided if decided is not None else await self._project.find(action)

    def keep_for_session(self, action: Action, decision: ApprovalVerdict) -> None:
        """Remember a decision while the session lives."""
        self._session[action] = decision

    async def keep_for_project(self, action: Action, decision: ApprovalVerdict) -> None:
        """Remember a decision in this project. If it cannot be saved, it applies to this session only."""
        if not await self._project.keep(action, decision):
            self._session[action] = decision


class ApprovalFile:
    """The decisions of one project, in a file in the home. See `ProjectApprovals`."""

    def __init__(self, home: Path, cwd: str) -> None:
        self._file = PrivateFile(home / "permissions" / f"{encode_cwd(cwd)}.json")

    async def find(self, action: Action) -> ApprovalVerdict | None:
        return (await asyncio.to_thread(self._read)).get(action)

    async def keep(self, action: Action, decision: ApprovalVerdict) -> bool:
        return await asyncio.to_thread(self._keep, action, decision)

    def _keep(self, action: Action, decision: ApprovalVerdict) -> bool:
        try:
            with self._file.writing():
                kept: dict[Action, ApprovalVerdict] = {**self._load(), action: decision}
                approvals = [Approval(*each) for each in kept.items()]
                self._file.replace(msgspec.json.format(msgspec.json.encode(approvals), indent=2))
        except (OSError, msgspec.DecodeError) as error:
            # The file may hold refusals, so it is not overwritten.
            _log.warning(
                "a decision could not be saved in %s and applies to this session only: %s", self._file.path, error
            )
            return False
        return True

    def _read(self) -> dict[Action, ApprovalVerdict]:
        """Read the file each time, because another session or the user may have changed it."""
        try:
            return self._load()
        except (OSError, msgspec.DecodeError):
            return {}  # an unreadable or insecure file approves nothing

    def _load(self) -> dict[Action, ApprovalVerdict]:
        try:
            return {approval.action: approval.decision for approval in _decode(self._file.read())}
        except FileNotFoundError:
            return {}


class SharedApprovals:
    """The decisions of one project, in the database of the sessions. See `ProjectApprovals`."""

    def __init__(self, store: SharesApprovals, cwd: str) -> None:
        self._store = store
        self._cwd = cwd

    async def find(self, action: Action) -> ApprovalVerdict | None:
        try:
            found = await self._store.find_approval(self._cwd, msgspec.json.encode(action))
        except LogError as error:
            _log.warning("saved decisions cannot be read: %s", error)
            return None
        return None if found is None else msgspec.convert(found, ApprovalVerdict)

    async def keep(self, action: Action, decision: ApprovalVerdict) -> bool:
        try:
            await self._store.keep_approval(self._cwd, msgspec.json.encode(action), decision)
        except LogError as error:
            _log.warning("a decision could not be saved and applies to this session only: %s", error)
            return False
        return True
