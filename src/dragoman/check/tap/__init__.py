"""The tap, a transparent proxy between any client and any agent that records and judges their messages."""

from dragoman.check.tap.recorder_process import TapOptions
from dragoman.check.tap.tap import Tap, exit_code

__all__ = ["Tap", "TapOptions", "exit_code"]
