"""The commands that tests start: dragoman itself, a scripted agent, and an agent that sends raw messages."""

import json
import subprocess
import sys
from pathlib import Path

from dragoman.testing import dump_turns
from tests.in_process import run_in_process

DRAGOMAN = [sys.executable, "-m", "dragoman"]
RAW_AGENT = str(Path(__file__).parent / "peers" / "raw_agent.py")


def dragoman(*arguments, **settings):
    """Run a command of dragoman in this process, with pipes. Without `input` or `stdin`, stdin is empty.

    Starting Python takes longer than most commands. Use `start_dragoman` for behaviour that needs a separate process:
    its signals, the end of its pipes and what it leaves behind.
    """
    return run_in_process(arguments, **settings)


def start_dragoman(*arguments, **settings):
    """Run a command of dragoman as a child process to its end. Takes the arguments of `dragoman`."""
    stdin = {} if settings.keys() & {"input", "stdin"} else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        [*DRAGOMAN, *arguments], capture_output=True, text=True, timeout=50, check=False, **stdin, **settings
    )


def scripted(*turns):
    """Return the command of a scripted agent that obeys ACP. Each turn is a list of steps."""
    return [sys.executable, "-m", "dragoman.testing", dump_turns(list(turns))]


def raw(script=None, *prompts, capabilities=None):
    """Return the command of an agent that sends scripted messages. `prompts` are its answers to each prompt."""
    script = dict(script or {})
    if prompts:
        script["session/prompt"] = list(prompts)
    if capabilities is not None:
        script["initialize"] = [[{"result": {"protocolVersion": 1, "agentCapabilities": capabilities}}]]
    return [sys.executable, RAW_AGENT, json.dumps(script)]
