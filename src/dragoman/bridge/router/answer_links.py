"""Approval links: a user without a credential answers one permission request, once, e.g. on a phone.

The owner creates a link for an open permission request. The link's code is the only credential of the user who opens
it. It is valid for this request only: the user sees the tool call and chooses an option that applies once. Options that
apply to later requests are not offered.

    OPEN ──an option is chosen──▶ ANSWERED   by the link, or by a viewer first
      ├──────time is up────────▶ OVER        the request still waits for viewers
      └──────request gone──────▶ ANSWERED    by a timeout, a cancel, or the agent

A link that is no longer open shows that state while it is stored. Links are in memory, like the requests, and end with
the bridge. Only the hash of a code is stored. Bridges that share a database register the hashes there, so that each
bridge can find the owner of a link.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.bridge.guard.credentials import hash_code, make_code
from dragoman.bridge.router.code_register import CodeRegister
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.sessions.agent_request import PERMISSION, AgentRequest
from dragoman.bridge.sessions.questions import Questions
from dragoman.bridge.viewers import ViewerRequest
from dragoman.errors import DragomanError, ErrorCode, RpcError
from dragoman.wire.envelope import fields_of, string_of

LINK = "_dragoman/question/link"

LINK_LIFE_S = 3600.0
"""Life of a link. An unanswered permission request is refused after an hour as well."""

MAX_LINKS = 64
"""Links stored per agent, open or not. A new one replaces the oldest."""

_ONCE = frozenset({"allow_once", "reject_once"})


class AnswerLink(msgspec.Struct, frozen=True, eq=False):
    """A link to one question."""

    request: AgentRequest
    shown: Raw
    """The tool call and its session, as shown by the page that created the link."""
    expires: float
    """Seconds since 1970."""


class LinkedQuestion(msgspec.Struct, frozen=True, eq=False):
    """The question of a link that a user opened."""

    described: dict[str, Any]
    """The state of the link, for the answer page."""
    is_offered: bool = True
    """Whether the link offers the chosen option. True if none was chosen."""


class AnswerLinks:
    """The links to the questions of one agent, by the hashes of their codes."""

    def __init__(self, questions: Questions, register: CodeRegister | None = None) -> None:
        self._questions = questions
        self._register = register
        self.clock: Callable[[], float] = time.time if register is None else register.now_s
        self._links: dict[bytes, AnswerLink] = {}

    async def make(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/question/link`: create a link to a question that the viewer was asked."""
        fields = fields_of(request.params)
        asked = self._questions.asked_of(request.viewer, bytes(fields.get("requestId", Raw(b""))))
        if asked is None or asked.method != PERMISSION or asked.is_settled:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"problem": "this request is no longer open"})
        if not _options_once(asked):
            problem = (
                "every option of this request applies to later requests as well, which an approval link cannot grant"
            )
            raise RpcError(ErrorCode.INVALID_REQUEST, {"problem": problem})
        code = make_code()
        hash_ = hash_code(code)
        link = AnswerLink(asked, fields.get("shown", Raw(b"{}")), self.clock() + LINK_LIFE_S)
        self._links[hash_] = link
        while len(self._links) > MAX_LINKS:
            del self._links[next(iter(self._links))]
        if self._register is not None:  # every bridge must find the question before a user has the link
            try:
                await self._register.publish("question", hash_, life_s=LINK_LIFE_S, limit=MAX_LINKS)
            except DragomanError as error:
                self._links.pop(hash_, None)
                problem = f"no approval link can be created now: {error}"
                raise RpcError(ErrorCode.INTERNAL_ERROR, {"problem": problem}) from None
        return {"path": f"answer#{code}", "expires": int(link.expires * 1000)}

    def open(self, hash_: bytes, option_id: str | None = None) -> LinkedQuestion | None:
        """Return the question of a code, given its hash, or None if there is none. Apply the option first, if given.

        A link that is no longer open ignores the option. The description shows its state.
        """
        link = self._links.get(hash_)
        if link is None:
            return None
        is_offered = option_id is None or self._answer(link, option_id)
        return LinkedQuestion(self._describe(link), is_offered)

    def _describe(self, link: AnswerLink) -> dict[str, Any]:
        """Return the state of a link. Only an open link describes its question."""
        request = link.request
        if request.is_settled:
            return {"state": "answered", "by": request.settled_by, "choice": _choice_of(request)}
        if self.clock() >= link.expires:
            return {"state": "over"}
        options = [{key: option.get(key) for key in ("optionId", "name", "kind")} for option in _options_once(request)]
        return {"state": "open", "shown": link.shown, "options": options, "expires": int(link.expires * 1000)}

    def _answer(self, link: AnswerLink, option_id: str) -> bool:
        """Settle the question with an option, if the link is open. Return False if the link does not offer it."""
        chosen = [option for option in _options_once(link.request) if string_of(option["optionId"]) == option_id]
        if chosen and not link.request.is_settled and self.clock() < link.expires:
            self._questions.answer_by_link(link.request, {"outcome": "selected", "optionId": chosen[0]["optionId"]})
        return bool(chosen)


def _options_once(request: AgentRequest) -> list[dict[str, Raw]]:
    return [option for option in request.options() if string_of(option.get("kind")) in _ONCE]


def _choice_of(request: AgentRequest) -> str | None:
    """Return the name of the option that was chosen."""
    if request.result is None:
        return None
    chosen = string_of(fields_of(fields_of(request.result).get("outcome", Raw(b"{}"))).get("optionId"))
    names = [string_of(option.get("name")) for option in request.options() if string_of(option["optionId"]) == chosen]
    return names[0] if names else None
