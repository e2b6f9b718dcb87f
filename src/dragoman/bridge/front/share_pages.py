"""`/shares`: the owner creates, lists and revokes read-only links to one session or to all.

GET     all shares
POST    {session, agent, title, hours} → a share, with the path of its link
DELETE  /shares/<id>
"""

import asyncio
from typing import Any

import msgspec

from dragoman.bridge import Bridge
from dragoman.bridge.front.exchange import NO_STORE, Exchange, HttpError, decode_form
from dragoman.bridge.front.limits import RequestLimits
from dragoman.bridge.guard import Grant, Guard, Share, TooManySharesError
from dragoman.bridge.guard.shares import OVER
from dragoman.errors import LogError
from dragoman.text import one_line

SHARES_PATH = "/shares"

_MAX_HOURS = 30 * 24
_HOUR_S = 3600
_MAX_TITLE = 200


class _NewShare(msgspec.Struct, forbid_unknown_fields=True):
    hours: int
    agent: str | None = None
    session: str | None = None
    title: str = ""


class SharePages:
    """Serves the shares of a bridge to its owner, and closes the viewers of a share that has ended."""

    def __init__(self, bridge: Bridge, guard: Guard, limits: RequestLimits) -> None:
        self._bridge = bridge
        self._shares = guard.shares
        self._shares.on_ended = bridge.end_share
        self._limits = limits

    async def serve(self, exchange: Exchange, grant: Grant) -> None:
        """Answer one request. Raises HttpError."""
        if grant.role != "owner":
            raise HttpError(403, "only an owner can create read-only links; ask the owner who invited you")
        share_id = exchange.path.removeprefix(SHARES_PATH).removeprefix("/")
        if share_id:
            exchange.allow("DELETE")
            await self._withdraw(exchange, share_id)
            return
        exchange.allow("GET", "HEAD", "POST")
        if exchange.method == "POST":
            await self._make(exchange)
        else:
            await exchange.reply_json(200, {"shares": [_describe(share) for share in await self._shares.list()]})

    async def _make(self, exchange: Exchange) -> None:
        form = decode_form(
            await exchange.read_json(self._limits.max_form_bytes, self._limits.body_timeout_s), _NewShare
        )
        if not 1 <= form.hours <= _MAX_HOURS:
            raise HttpError(400, f"hours is {form.hours}; expected 1 to {_MAX_HOURS}")
        if form.session is not None:
            await self._check_session(form.agent, form.session)
        title = one_line(form.title, _MAX_TITLE)
        agent_name = form.agent if form.session is not None else None
        try:
            share, code = await self._shares.make(form.hours * _HOUR_S, agent_name, form.session, title)
        except TooManySharesError as error:
            raise HttpError(409, str(error)) from None
        except OSError as error:
            raise HttpError(507, f"the read-only link cannot be saved: {error.strerror}; free some space") from None
        await exchange.reply_json(200, {**_describe(share), "path": f"login?code={code}&for=reader"})

    async def _check_session(self, agent_name: str | None, session_id: str) -> None:
        """Check that the session exists on this node or another one. Raises HttpError."""
        agent = None if agent_name is None else self._bridge.agent(agent_name)
        if agent is None:
            raise HttpError(
                400, "the request names no known agent; a read-only link to one session needs the session's agent"
            )
        try:
            is_there = await agent.has_session(session_id)
        except LogError as error:
            raise HttpError(503, str(error)) from None
        if not is_there:
            raise HttpError(404, "the bridge has no such session; open it once, then share it")

    async def _withdraw(self, exchange: Exchange, share_id: str) -> None:
        try:
            is_there = await self._shares.withdraw(share_id)
        except OSError as error:
            problem = f"the read-only link is revoked, but that cannot be saved: {error.strerror}"
            raise HttpError(507, f"{problem}; free some space before you restart the bridge") from None
        if not is_there:
            raise HttpError(404, "this read-only link no longer exists")
        await exchange.reply(204, headers=[NO_STORE])

    def watch(self, share: Share | None) -> asyncio.TimerHandle | None:
        """Close the viewers of a share when it expires. Return the timer, which the caller cancels earlier."""
        if share is None:
            return None
        left_s = self._shares.left_s(share)
        return asyncio.get_running_loop().call_later(left_s, self._bridge.end_share, share.id, OVER)


def _describe(share: Share) -> dict[str, Any]:
    return {
        "id": share.id,
        "agent": share.agent,
        "session": share.session,
        "title": share.title,
        "created": share.created * 1000,
        "expires": share.expires * 1000,
        "opened": share.unused is None,
    }
