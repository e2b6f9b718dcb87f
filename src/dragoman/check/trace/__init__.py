"""Recorded conversations of any program, and the report about them."""

from dragoman.check.trace.source import TraceError
from dragoman.check.trace.trace import check_trace, read_trace

__all__ = ["TraceError", "check_trace", "read_trace"]
