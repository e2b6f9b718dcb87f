"""Pairs of a client and an agent that are measured together."""

from collections.abc import Callable, Sequence
from typing import Any

from bench import commands
from bench.client_run import run_client
from bench.commands import Command
from bench.measure import PYTHON_SDK, TYPESCRIPT_SDK

OURS = "dragoman"
DRAGOMAN_CLIENT = commands.python("dragoman_client.py")
PYTHON_SDK_CLIENT = commands.python("python_sdk_client.py")

# The TypeScript agent is measured with the Python SDK's client, because its own SDK has no comparable client.
PAIRS: dict[str, tuple[Command, Callable[[], Command]]] = {
    OURS: (DRAGOMAN_CLIENT, lambda: commands.python("dragoman_agent.py")),
    PYTHON_SDK: (PYTHON_SDK_CLIENT, lambda: commands.python("python_sdk_agent.py")),
    TYPESCRIPT_SDK: (PYTHON_SDK_CLIENT, lambda: commands.node("typescript_sdk_agent.mjs")),
}


def contenders(options: Sequence[str], read: Callable[[dict[str, Any]], float]) -> dict[str, Callable[[], float]]:
    """Return, for each pair, a function that runs it with `options` and reads a figure from its report."""
    return {
        name: lambda client=client, agent=agent: read(run_client(client, options, agent()))
        for name, (client, agent) in PAIRS.items()
    }
