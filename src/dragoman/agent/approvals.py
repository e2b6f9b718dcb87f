"""What a person has decided for longer than one call: for the session, or for good in this project.

`<home>/permissions/<encoded cwd>.json` holds what was decided for good: a list of deeds, each with `allow` or
`reject`. A deed is matched to the letter: an approval of `make test` says nothing of `make`, nor of another
directory.
"""

import os
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.agent.tools.tool import Deed
from dragoman.store import encode_cwd

Decision = Literal["allow", "reject"]


class Approval(msgspec.Struct, frozen=True):
    """One deed and what was decided of it."""

    deed: Deed
    decision: Decision


_decode = msgspec.json.Decoder(list[Approval]).decode


class Approvals:
    """The decisions that hold in one session; those for good are shared by all sessions of its project."""

    def __init__(self, home: Path, cwd: str) -> None:
        self._path = home / "permissions" / f"{encode_cwd(cwd)}.json"
        self._session: dict[Deed, Decision] = {}

    def find(self, deed: Deed) -> Decision | None:
        """Return what was decided of exactly this deed, if anything."""
        decided = self._session.get(deed)
        return decided if decided is not None else self._read().get(deed)

    def keep_for_session(self, deed: Deed, decision: Decision) -> None:
        """Remember a decision as long as the session lives."""
        self._session[deed] = decision

    def keep_for_good(self, deed: Deed, decision: Decision) -> None:
        """Remember a decision in this project."""
        import tempfile  # 7 ms, which a session that is only loaded need not wait for

        approvals: dict[Deed, Decision] = {**self._read(), deed: decision}
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = msgspec.json.format(
            msgspec.json.encode([Approval(*approval) for approval in approvals.items()]), indent=2
        )
        handle, temporary = tempfile.mkstemp(dir=self._path.parent)  # 0600 by nature
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).replace(self._path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _read(self) -> dict[Deed, Decision]:
        """Read anew each time: another session, or a person with an editor, may have changed it."""
        try:
            return {approval.deed: approval.decision for approval in _decode(self._path.read_bytes())}
        except (OSError, msgspec.DecodeError):
            return {}  # what cannot be read approves nothing
