"""The commands that tests start: dragoman itself, a scripted agent, and an agent that sends raw messages."""

import json
import subprocess
import sys
from pathlib import Path

from dragoman.testing import dump_turns

DRAGOMAN = [sys.executable, "-m", "dragoman"]
RAW_AGENT = str(Path(__file__).parent / "peers" / "raw_agent.py")


def dragoman(*arguments, **settings):
    """Run a command of dragoman to its end, in pipes; without `input` or `stdin` it has nothing to read."""
    given = {} if settings.keys() & {"input", "stdin"} else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        [*DRAGOMAN, *arguments], capture_output=True, text=True, timeout=50, check=False, **given, **settings
    )


def scripted(*turns):
    """Return the command of a scripted agent, which keeps the protocol; each turn is a list of steps."""
    return [sys.executable, "-m", "dragoman.testing", dump_turns(list(turns))]


def raw(script=None, *prompts, capabilities=None):
    """Return the command of an agent that sends the messages of a script; `prompts` are its answers to each prompt."""
    script = dict(script or {})
    if prompts:
        script["session/prompt"] = list(prompts)
    if capabilities is not None:
        script["initialize"] = [[{"result": {"protocolVersion": 1, "agentCapabilities": capabilities}}]]
    return [sys.executable, RAW_AGENT, json.dumps(script)]
