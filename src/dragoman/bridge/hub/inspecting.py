"""Viewers that look at the wire: what was remembered, and then what comes."""

import asyncio

import msgspec

from dragoman.bridge.envelope import make_notification
from dragoman.bridge.hub.inspector import Entry, Examiner
from dragoman.bridge.hub.request import Request
from dragoman.bridge.hub.viewer import Viewer
from dragoman.bridge.supervisor.process import WireBatch, WireLog
from dragoman.wire.message import BAD_JSON


class _Params(msgspec.Struct, rename="camel"):
    on: bool
    session_id: str | None = None


class Inspecting:
    """Answers `_dragoman/inspect`, and sends `_dragoman/wire` while anybody wants it."""

    def __init__(self, wire_log: WireLog) -> None:
        self._wire_log = wire_log
        self._lookers: dict[Viewer, str | None] = {}
        self._examiner = Examiner()
        self._fresh: list[WireBatch] = []

    def answer(self, request: Request) -> None:
        """Begin or end a look at the wire."""
        try:
            params = msgspec.json.decode(request.params, type=_Params)
        except BAD_JSON as error:
            request.refuse(-32602, f"params: {error}; expected on: true or false, and maybe a sessionId")
            return
        if not params.on:
            self.left(request.viewer)
            request.answer({"entries": []})
            return
        self._tell()
        if not self._lookers:
            self._examiner = Examiner()
            self._wire_log.on_batch = self._heard
            examiner = self._examiner
        else:
            examiner = Examiner()
        entries = [entry for batch in self._wire_log.batches() for entry in examiner.examine(batch)]
        self._lookers[request.viewer] = params.session_id
        request.answer({"entries": _of(entries, params.session_id)})

    def left(self, viewer: Viewer) -> None:
        """Tell a viewer no more."""
        self._lookers.pop(viewer, None)
        if not self._lookers:
            self._wire_log.on_batch = None
            self._fresh = []

    def _heard(self, batch: WireBatch) -> None:
        if not self._fresh:
            asyncio.get_running_loop().call_soon(self._tell)
        self._fresh.append(batch)

    def _tell(self) -> None:
        fresh, self._fresh = self._fresh, []
        entries = [entry for batch in fresh for entry in self._examiner.examine(batch)]
        if not entries:
            return
        told: dict[str | None, bytes] = {}
        for viewer, session_id in list(self._lookers.items()):
            if not viewer.has_room():
                continue  # it sees by the numbers that some are missing
            if session_id not in told:
                wanted = _of(entries, session_id)
                told[session_id] = make_notification("_dragoman/wire", {"entries": wanted}) if wanted else b""
            if told[session_id]:
                viewer.send(told[session_id])


def _of(entries: list[Entry], session_id: str | None) -> list[Entry]:
    return entries if session_id is None else [entry for entry in entries if entry.get("sessionId") == session_id]
