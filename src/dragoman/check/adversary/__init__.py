"""The checker as an adversarial agent that clients connect to."""

from dragoman.check.adversary.parts import TOUR_TURNS
from dragoman.check.adversary.run import (
    ClientNotStartedError,
    ClientOptions,
    Listening,
    check_client,
    listen,
)

__all__ = ["TOUR_TURNS", "ClientNotStartedError", "ClientOptions", "Listening", "check_client", "listen"]
