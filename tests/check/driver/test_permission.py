"""Answers of the driver to permission requests of the agent under check."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.check.driver.client_services import ClientServices


class Answers(list[Any]):
    """A sender that stores the answers."""

    def answer(self, request_id: Any, result: Any) -> None:
        self.append(result["outcome"]["optionId"])

    def refuse(self, request_id: Any, code: int, message: str) -> None:
        self.append(message)


def answer_to(services: ClientServices, *kinds: str) -> Any:
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds]
    answers = Answers()
    services.handle(answers, 1, "session/request_permission", {"options": options})
    [answer] = answers
    return answer


@pytest.mark.parametrize(
    ("kinds", "answer"),
    [
        (("allow_always", "allow_once", "reject_once"), "allow_once"),
        (("allow_always", "reject_always", "reject_once"), "reject_once"),
        (("allow_always",), "the request has no option to allow it once"),
    ],
)
def test_always_option_is_never_chosen(kinds: tuple[str, ...], answer: str, tmp_path: Path):
    assert answer_to(ClientServices(tmp_path), *kinds) == answer


def test_rejection_is_for_one_call(tmp_path: Path):
    services = ClientServices(tmp_path)
    services.permission = "reject"
    assert answer_to(services, "reject_always", "allow_once", "reject_once") == "reject_once"
