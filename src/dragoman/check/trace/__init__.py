"""Recorded conversations, whoever recorded them, and their judgement."""

from dragoman.check.trace.trace import FORMATS, Trace, TraceUnreadable, check_trace, read_trace

__all__ = ["FORMATS", "Trace", "TraceUnreadable", "check_trace", "read_trace"]
