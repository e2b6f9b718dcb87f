"""Looks, now and then, for viewers that do not read, for space on a full disk, and for an agent that nobody needs."""

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.bridge.hub.hub import Hub

_LOOKS = 8
"""How often within the shortest time that matters."""

_MAX_PAUSE_S = 5.0


class Sweeper:
    """Goes round for as long as the hub is open."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._idle_since: float | None = None

    async def run(self) -> None:
        """Go round until cancelled."""
        settings = self._hub.settings
        pause_s = min(_MAX_PAUSE_S, settings.viewer_stall_s / _LOOKS, settings.idle_stop_s / _LOOKS)
        while True:
            await asyncio.sleep(pause_s)
            for viewer in list(self._hub.viewers.values()):
                fault = viewer.fault(settings.viewer_stall_s)
                if fault is not None:
                    viewer.drop(fault)
            for session in self._hub.sessions.values():
                if session.journal.is_waiting:
                    session.journal.recover()
            await self._stop_if_idle()

    async def _stop_if_idle(self) -> None:
        if not self._is_idle():
            self._idle_since = None
            return
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since >= self._hub.settings.idle_stop_s:
            self._idle_since = None
            await self._hub.supervisor.stop()

    def _is_idle(self) -> bool:
        hub = self._hub
        if hub.supervisor.status.state != "ready" or len(hub.supervisor.calls) or len(hub.asks):
            return False
        if any(session.attachments or session.turns or session.parked for session in hub.sessions.values()):
            return False
        return hub.supervisor.support.can_reopen or not any(session.live for session in hub.sessions.values())
