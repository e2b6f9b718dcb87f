"""Methods of both clean peers for breaches."""

import os
from typing import Any

from tests.check.mutants.peer import METHOD_NOT_FOUND


def die(*args: Any) -> None:
    os._exit(1)


def die_of_length(self: Any, line: bytes) -> None:
    if len(line) > 65_536:
        os._exit(1)
    type(self).receive(self, line)


def pass_over_length(self: Any, line: bytes) -> None:
    if len(line) <= 65_536:
        type(self).receive(self, line)


def answer_notification(self: Any, method: str) -> None:
    self.error(None, "notification", METHOD_NOT_FOUND, "there is no such notification")
