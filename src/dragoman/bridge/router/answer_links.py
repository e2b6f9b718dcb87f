"""Links by which a person without a credential answers one question, once: an approval on a phone.

An owner makes a link for a permission that waits. Its code is the only credential of the person who opens it, and is
good for this question alone: to see what will be approved, and to choose an option that holds once. An option that
holds for longer is not offered, because it would answer questions to come.

    OPEN ──an option is chosen──▶ ANSWERED   by the link, or by a viewer first
      ├──────time is up────────▶ OVER        the question still waits for viewers
      └──────question gone─────▶ ANSWERED    by a timeout, a cancel, or the agent

A link that is no longer open says so in words as long as it is kept. Links are in memory, as the questions are: both
end with the bridge. No code is kept, only its hash. Bridges that share a database tell each other there which of them
has the question of a link, and ask that one when somebody opens it.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery import Viewer, ViewerRequest
from dragoman.bridge.envelope import fields_of, string_of
from dragoman.bridge.guard.credentials import hash_code, make_code
from dragoman.bridge.router.agent_request import PERMISSION, AgentRequest
from dragoman.bridge.router.code_register import CodeRegister
from dragoman.errors import DragomanError, ErrorCode

LINK = "_dragoman/question/link"

LINK_LIFE_S = 3600.0
"""Time to find the phone; a question that nobody is there for is refused after an hour, too."""

MAX_LINKS = 64
"""Links of one agent that are kept, open or not; a further one removes the oldest."""

_ONCE = frozenset({"allow_once", "reject_once"})


class AnswerLink(msgspec.Struct, frozen=True, eq=False):
    """A link to one question."""

    request: AgentRequest
    shown: Raw
    """The tool call and its session, as the page that made the link shows them."""
    expires: float
    """Seconds since 1970."""


class LinkedQuestion(msgspec.Struct, frozen=True, eq=False):
    """The question of a link that somebody opened."""

    described: dict[str, Any]
    """How the link stands, for the page behind it."""
    is_offered: bool = True
    """Whether the link offers the option that was chosen, if one was."""


class OpenQuestions(Protocol):
    """The parts of the questions of an agent that links need."""

    def asked_of(self, viewer: Viewer, id_: bytes) -> AgentRequest | None: ...
    def answer_by_link(self, request: AgentRequest, outcome: dict[str, object]) -> None: ...


class AnswerLinks:
    """The links to the questions of one agent, by the hashes of their codes."""

    def __init__(self, questions: OpenQuestions, register: CodeRegister | None = None) -> None:
        self._questions = questions
        self._register = register
        self.clock: Callable[[], float] = time.time if register is None else register.now_s
        self._links: dict[bytes, AnswerLink] = {}

    def make(self, request: ViewerRequest) -> None:
        """Answer `_dragoman/question/link`: make a link to a question that the viewer was asked."""
        fields = fields_of(request.params)
        asked = self._questions.asked_of(request.viewer, bytes(fields.get("requestId", Raw(b""))))
        if asked is None or asked.method != PERMISSION or asked.is_settled:
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, {"problem": "this question waits no longer"})
        elif not _options_once(asked):
            problem = "each option of this question holds for longer than once, which a link does not offer"
            request.refuse(ErrorCode.INVALID_REQUEST, {"problem": problem})
        else:
            code = make_code()
            link = AnswerLink(asked, fields.get("shown", Raw(b"{}")), self.clock() + LINK_LIFE_S)
            self._links[hash_code(code)] = link
            while len(self._links) > MAX_LINKS:
                del self._links[next(iter(self._links))]
            made = {"path": f"answer#{code}", "expires": int(link.expires * 1000)}
            if self._register is None:
                request.answer(made)
            else:
                request.viewer.spawn(self._publish(request, self._register, hash_code(code), made))

    async def _publish(
        self, request: ViewerRequest, register: CodeRegister, hash_: bytes, made: dict[str, Any]
    ) -> None:
        """Answer with a link once every bridge finds its question."""
        try:
            await register.publish("question", hash_, life_s=LINK_LIFE_S, limit=MAX_LINKS)
        except DragomanError as error:
            self._links.pop(hash_, None)
            request.refuse(ErrorCode.INTERNAL_ERROR, {"problem": f"no link can be made now: {error}"})
        else:
            request.answer(made)

    def open(self, hash_: bytes, option_id: str | None = None) -> LinkedQuestion | None:
        """Give the question of a code, by its hash, after an option was chosen if one is given; None if there is none.

        A link that is not open any more takes no option, and says so.
        """
        link = self._links.get(hash_)
        if link is None:
            return None
        is_offered = option_id is None or self.answer(link, option_id)
        return LinkedQuestion(self.describe(link), is_offered)

    def find(self, code: str) -> AnswerLink | None:
        """Give the link of a code; None if there is none."""
        return self._links.get(hash_code(code))

    def describe(self, link: AnswerLink) -> dict[str, Any]:
        """Say how a link stands; only one that is open tells what the question is about."""
        request = link.request
        if request.is_settled:
            return {"state": "answered", "by": request.settled_by, "choice": _choice_of(request)}
        if self.clock() >= link.expires:
            return {"state": "over"}
        options = [{key: option.get(key) for key in ("optionId", "name", "kind")} for option in _options_once(request)]
        return {"state": "open", "shown": link.shown, "options": options, "expires": int(link.expires * 1000)}

    def answer(self, link: AnswerLink, option_id: str) -> bool:
        """Settle the question by an option; false if the link does not offer it. A link that is not open is left."""
        chosen = [option for option in _options_once(link.request) if string_of(option["optionId"]) == option_id]
        if chosen and not link.request.is_settled and self.clock() < link.expires:
            self._questions.answer_by_link(link.request, {"outcome": "selected", "optionId": chosen[0]["optionId"]})
        return bool(chosen)


def _options_once(request: AgentRequest) -> list[dict[str, Raw]]:
    return [option for option in request.options() if string_of(option.get("kind")) in _ONCE]


def _choice_of(request: AgentRequest) -> str | None:
    """Name the option that was chosen."""
    if request.result is None:
        return None
    chosen = string_of(fields_of(fields_of(request.result).get("outcome", Raw(b"{}"))).get("optionId"))
    names = [string_of(option.get("name")) for option in request.options() if string_of(option["optionId"]) == chosen]
    return names[0] if names else None
