"""Parses short agent files and describes their changes."""

from pathlib import Path

from dragoman.assistant.profile import describe_changes
from dragoman.assistant.profile.profile import parse_profile


def parse(text):
    return parse_profile(text, Path("/p/dragoman.yaml"))


def changes(text, instead_of=""):
    return describe_changes(parse(text), parse(instead_of))
