"""Our bridge in front of agents that speak stdio."""

import sys

from dragoman.testing import dump_turns


def bridge(*agent, options=()):
    return [sys.executable, "-m", "dragoman", "serve", "--json", "--port", "0", *options, "--", *agent]


def scripted_bridge(*turns, options=()):
    return bridge(sys.executable, "-m", "dragoman.testing", dump_turns(list(turns)), options=options)
