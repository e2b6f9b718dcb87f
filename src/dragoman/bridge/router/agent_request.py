"""A request of the agent to its client, from the time when it comes until it is settled."""

import asyncio
from typing import Literal

from msgspec import Raw

from dragoman.bridge.delivery import Subscription, Viewer
from dragoman.bridge.envelope import ELICIT, fields_of, make_error, make_result, parse_list, string_of
from dragoman.bridge.registry import ServedSession
from dragoman.errors import ErrorCode
from dragoman.protocol.permission_options import find_default

PERMISSION = "session/request_permission"
QUESTIONS = frozenset({PERMISSION, ELICIT})

SettledBy = Literal["viewer", "link", "timeout", "cancel", "agent"]


class AgentRequest:
    """One request of the agent, until it is answered."""

    def __init__(
        self,
        agent_id: bytes,
        method: str,
        params: Raw,
        line: bytes,
        *,
        session: ServedSession | None = None,
        only: Viewer | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.method = method
        self.params = params
        self.line = line
        self.session = session
        self.only = only
        """The viewer whose own request it is about, if it is about one."""
        self.asked: dict[Viewer, bytes] = {}
        """Viewers that were asked and have not answered, with the id that the request has there."""
        self.refused_by: set[Viewer] = set()
        """Viewers that answered with an error."""
        self.timer: asyncio.TimerHandle | None = None
        """Runs while no viewer is there that could answer."""
        self.settled_by: SettledBy | None = None
        self.result: Raw | None = None
        """The answer that settled it; None while it is open, and for an error."""

    @property
    def is_settled(self) -> bool:
        """Whether it was answered, or needs no answer any more."""
        return self.settled_by is not None

    @property
    def is_question(self) -> bool:
        """Whether a person is to answer it."""
        return self.method in QUESTIONS

    def refusal(self) -> bytes:
        """Answer in place of a person: with the option that refuses."""
        if self.method == ELICIT:
            return make_result(self.agent_id, {"action": "decline"})
        option = self._rejecting_option()
        if option is None:
            problem = "nobody was there to answer, and none of the options is a refusal"
            return make_error(self.agent_id, ErrorCode.INTERNAL_ERROR, problem)
        return make_result(self.agent_id, {"outcome": {"outcome": "selected", "optionId": option}})

    def cancellation(self) -> bytes:
        """Answer for a turn that was cancelled."""
        if self.method == ELICIT:
            return make_result(self.agent_id, {"action": "cancel"})
        return make_result(self.agent_id, {"outcome": {"outcome": "cancelled"}})

    def stop_timer(self) -> None:
        """Wait no longer for a viewer to come."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def subscription_of(self, viewer: Viewer) -> Subscription | None:
        """Give a viewer's subscription to the session that it is about."""
        return self.session.subscriptions.get(viewer) if self.session else None

    def options(self) -> list[dict[str, Raw]]:
        """Give the options of a permission that can be chosen."""
        options = [fields_of(each) for each in parse_list(fields_of(self.params).get("options"))]
        return [fields for fields in options if "optionId" in fields]

    def _rejecting_option(self) -> Raw | None:
        named = self.options()
        position = find_default([string_of(fields.get("kind")) for fields in named], "reject")
        return None if position is None else named[position]["optionId"]
