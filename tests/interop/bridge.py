"""Our bridge in front of agents on stdio."""

import sys

from tests.commands import scripted


def bridge(*agent, options=()):
    return [sys.executable, "-m", "dragoman", "serve", "--format", "json", "--port", "0", *options, "--", *agent]


def scripted_bridge(*turns, options=()):
    return bridge(*scripted(*turns), options=options)
