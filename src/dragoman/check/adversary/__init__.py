"""The checker as an adversarial agent, which clients are pointed at."""

from dragoman.check.adversary.parts import TOUR_TURNS
from dragoman.check.adversary.run import ClientOptions, Listening, NeverStarted, TourAddress, check_client, listen

__all__ = ["TOUR_TURNS", "ClientOptions", "Listening", "NeverStarted", "TourAddress", "check_client", "listen"]
