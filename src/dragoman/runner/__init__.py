"""Agents in a container, or on another machine over ssh.

A command treats such an agent like a local one. It starts a small local process (`python -m dragoman.runner`), which
starts `docker` or `ssh`, passes the lines both ways and translates the paths in them.
"""

from dragoman.runner.place import RUNNER_PREFIX, InvalidPlaceError, read_place

__all__ = ["RUNNER_PREFIX", "InvalidPlaceError", "read_place"]
