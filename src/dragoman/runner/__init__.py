"""Agents that run elsewhere: in a container, or on another machine over ssh.

A command takes such an agent for one of this machine: it starts a small process here (`python -m dragoman.runner`),
which starts `docker` or `ssh`, passes the lines both ways and puts paths into the words of each side.
"""

from dragoman.runner.place import RUNNER_PREFIX, BadPlace, Place, read_place

__all__ = ["RUNNER_PREFIX", "BadPlace", "Place", "read_place"]
