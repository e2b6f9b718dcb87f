"""Recorded conversations of any program, and the report about them."""

from dragoman.check.trace.trace import FORMATS, Trace, TraceUnreadable, check_trace, read_trace

__all__ = ["FORMATS", "Trace", "TraceUnreadable", "check_trace", "read_trace"]
