"""What a person has decided for longer than one call: for the session, or for good in this project.

`<home>/permissions/<encoded cwd>.json` holds what was decided for good: a list of actions, each with `allow` or
`reject`. A action is matched to the letter: an approval of `make test` says nothing of `make`, nor of another
directory.
"""

import logging
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.agent.tools.tool import Action
from dragoman.files.private_file import PrivateFile
from dragoman.store import encode_cwd

ApprovalVerdict = Literal["allow", "reject"]


class Approval(msgspec.Struct, frozen=True):
    """One action and what was decided of it."""

    action: Action = msgspec.field(name="deed")  # its name in the files that exist
    decision: ApprovalVerdict


_log = logging.getLogger("dragoman.agent")
_decode = msgspec.json.Decoder(list[Approval]).decode


class Approvals:
    """The decisions that hold in one session; those for good are shared by all sessions of its project."""

    def __init__(self, home: Path, cwd: str) -> None:
        self._file = PrivateFile(home / "permissions" / f"{encode_cwd(cwd)}.json")
        self._session: dict[Action, ApprovalVerdict] = {}

    def find(self, action: Action) -> ApprovalVerdict | None:
        """Return what was decided of exactly this action, if anything; reads a file, so not for the event loop."""
        decided = self._session.get(action)
        return decided if decided is not None else self._read().get(action)

    def keep_for_session(self, action: Action, decision: ApprovalVerdict) -> None:
        """Remember a decision as long as the session lives."""
        self._session[action] = decision

    def keep_for_good(self, action: Action, decision: ApprovalVerdict) -> None:
        """Remember a decision in this project; one that cannot be written down holds in this session."""
        try:
            with self._file.writing():
                kept: dict[Action, ApprovalVerdict] = {**self._load(), action: decision}
                approvals = [Approval(*each) for each in kept.items()]
                self._file.replace(msgspec.json.format(msgspec.json.encode(approvals), indent=2))
        except (OSError, msgspec.DecodeError) as error:
            # What is there may hold refusals, so it is not written over.
            _log.warning("a decision could not be kept in %s, and holds in this session: %s", self._file.path, error)
            self._session[action] = decision

    def _read(self) -> dict[Action, ApprovalVerdict]:
        """Read anew each time: another session, or a person with an editor, may have changed it."""
        try:
            return self._load()
        except (OSError, msgspec.DecodeError):
            return {}  # what cannot be read, or others could have written, approves nothing

    def _load(self) -> dict[Action, ApprovalVerdict]:
        try:
            return {approval.action: approval.decision for approval in _decode(self._file.read())}
        except FileNotFoundError:
            return {}
