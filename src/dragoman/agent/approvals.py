"""Decisions of the person that hold for longer than one call: in the session, or for good in its project.

Those for good are shared by all sessions of the project. They are in `<home>/permissions/<encoded cwd>.json`: a list of
actions, each with `allow` or `reject`; or in the database, if sessions are there, so that they hold on every machine.
An action is matched exactly: an approval of `make test` does not cover `make`, nor another directory.
"""

import asyncio
import logging
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from dragoman.agent.prepared_call import Action
from dragoman.errors import LogFailed
from dragoman.files.private_file import PrivateFile
from dragoman.store import SharesApprovals, encode_cwd

ApprovalVerdict = Literal["allow", "reject"]


class Approval(msgspec.Struct, frozen=True):
    """One action and the decision about it."""

    action: Action = msgspec.field(name="deed")  # its name in the files that exist
    decision: ApprovalVerdict


_log = logging.getLogger("dragoman.agent")
_decode = msgspec.json.Decoder(list[Approval]).decode


class ProjectApprovals(Protocol):
    """The decisions that hold for good in one project."""

    async def find(self, action: Action) -> ApprovalVerdict | None:
        """Return the decision about exactly this action; None also where decisions cannot be read."""
        ...

    async def keep(self, action: Action, decision: ApprovalVerdict) -> bool:
        """Remember a decision, and tell whether it could be written down."""
        ...


class Approvals:
    """The decisions that hold in one session."""

    def __init__(self, project: ProjectApprovals) -> None:
        self._project = project
        self._session: dict[Action, ApprovalVerdict] = {}

    async def find(self, action: Action) -> ApprovalVerdict | None:
        """Return the decision about exactly this action, if there is one."""
        decided = self._session.get(action)
        return decided if decided is not None else await self._project.find(action)

    def keep_for_session(self, action: Action, decision: ApprovalVerdict) -> None:
        """Remember a decision as long as the session lives."""
        self._session[action] = decision

    async def keep_for_good(self, action: Action, decision: ApprovalVerdict) -> None:
        """Remember a decision in this project; one that cannot be written down holds in this session."""
        if not await self._project.keep(action, decision):
            self._session[action] = decision


class ApprovalFile:
    """The decisions for one project in a file of the home. See `ProjectApprovals`."""

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
            _log.warning("a decision could not be kept in %s, and holds in this session: %s", self._file.path, error)
            return False
        return True

    def _read(self) -> dict[Action, ApprovalVerdict]:
        """Read anew each time: another session, or a person with an editor, may have changed it."""
        try:
            return self._load()
        except (OSError, msgspec.DecodeError):
            return {}  # a file that cannot be read, or that others could have written, approves nothing

    def _load(self) -> dict[Action, ApprovalVerdict]:
        try:
            return {approval.action: approval.decision for approval in _decode(self._file.read())}
        except FileNotFoundError:
            return {}


class SharedApprovals:
    """The decisions for one project in the database that has the sessions. See `ProjectApprovals`."""

    def __init__(self, store: SharesApprovals, cwd: str) -> None:
        self._store = store
        self._cwd = cwd

    async def find(self, action: Action) -> ApprovalVerdict | None:
        try:
            found = await self._store.find_approval(self._cwd, msgspec.json.encode(action))
        except LogFailed as error:
            _log.warning("decisions that hold for good cannot be read: %s", error)
            return None
        return None if found is None else msgspec.convert(found, ApprovalVerdict)

    async def keep(self, action: Action, decision: ApprovalVerdict) -> bool:
        try:
            await self._store.keep_approval(self._cwd, msgspec.json.encode(action), decision)
        except LogFailed as error:
            _log.warning("a decision could not be kept, and holds in this session: %s", error)
            return False
        return True
