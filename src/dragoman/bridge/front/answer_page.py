"""`/answer`: a user with a link answers one permission request, once.

GET   the page, the same for every user, because browsers do not send the fragment of the link, which has the code
POST  {code} → the question, or how it was answered
POST  {code, option} → answers it

The code is the only credential for this path, and is valid for no other. A wrong code counts as a failed login.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec

from dragoman.bridge import Bridge
from dragoman.bridge.front.exchange import Exchange, HttpError, decode_form
from dragoman.bridge.front.limits import RequestLimits
from dragoman.bridge.guard import Guard

ANSWER_PATH = "/answer"

SendPage = Callable[[Exchange, str], Awaitable[None]]

_UNKNOWN = "this approval link is not valid: it is incomplete, or the bridge was restarted since; ask for a new one"
_NOT_OFFERED = "this link does not offer that option; choose one that it shows"


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    code: str
    option: str | None = None


class AnswerPage:
    """Serves the page of one question and receives its answer."""

    def __init__(self, bridge: Bridge, guard: Guard, limits: RequestLimits, send_page: SendPage) -> None:
        self._bridge = bridge
        self._guard = guard
        self._limits = limits
        self._send_page = send_page

    async def serve(self, exchange: Exchange) -> None:
        """Answer one request. Raises HttpError."""
        exchange.allow("GET", "HEAD", "POST")
        if exchange.method != "POST":
            await self._send_page(exchange, "answer.html")
            return
        body = await exchange.read_json(self._limits.max_form_bytes, self._limits.body_timeout_s)
        form = decode_form(body, _Answer)
        opened = await self._bridge.open_question(form.code, form.option)
        if opened is None:
            refusal = self._guard.refuse_login(exchange.scope)
            if refusal.status == HTTPStatus.UNAUTHORIZED:
                raise HttpError(404, _UNKNOWN)
            raise HttpError(refusal.status, refusal.reason, list(refusal.headers))
        if not opened.is_offered:
            raise HttpError(400, _NOT_OFFERED)
        await exchange.reply_json(200, opened.described)
