"""The checker as an adversarial agent, for clients to be pointed at."""

from dragoman.check.adversary.listen import Listening, listen
from dragoman.check.adversary.parts import TOUR_TURNS
from dragoman.check.adversary.run import ClientOptions, NeverStarted, check_client

__all__ = ["TOUR_TURNS", "ClientOptions", "Listening", "NeverStarted", "check_client", "listen"]
