"""All columns of the matrix, with our own first."""

import sys
from importlib.metadata import version

from bench import commands
from bench.matrix.subject import (
    NODE_PEERS,
    TEST_PEERS,
    Subject,
    example_command,
    installed_version,
    node_command,
    node_version,
)
from dragoman import __version__
from dragoman.check.driver import ScriptTurn

SCRIPT = commands.PEERS / "matrix_script.yaml"
PERMISSION = (ScriptTurn("hello"), ScriptTurn("permission"))
PLACE = "{agent}"


def _python_sdk() -> str:
    return version("agent-client-protocol")


AGENTS = (
    Subject(
        name="dragoman",
        about="our own agent with its guide, the model that needs no key",
        version=lambda: __version__,
        command=lambda: commands.dragoman_with_models("agent"),
        is_ours=True,
    ),
    Subject(
        name="dragoman, scripted",
        about="our own agent with a script that reads and writes files and runs a command",
        version=lambda: __version__,
        command=lambda: commands.dragoman_with_models("agent", "--model", f"script:{SCRIPT}"),
        turns=(ScriptTurn("Read it."), ScriptTurn("Write it."), ScriptTurn("Run it.")),
        is_ours=True,
    ),
    Subject(
        name="dragoman, bridge",
        about="the scripted one behind `dragoman serve`, at its WebSocket address",
        version=lambda: __version__,
        command=lambda: commands.dragoman_with_models("agent", "--model", f"script:{SCRIPT}"),
        turns=(ScriptTurn("Read it."), ScriptTurn("Write it."), ScriptTurn("Run it.")),
        is_ours=True,
        served=True,
    ),
    Subject(
        name="Python SDK, agent",
        about="`examples/agent.py` of the SDK's source distribution; it echoes",
        version=_python_sdk,
        command=example_command("agent.py"),
    ),
    Subject(
        name="Python SDK, echo",
        about="`examples/echo_agent.py` of the SDK's source distribution; it echoes",
        version=_python_sdk,
        command=example_command("echo_agent.py"),
    ),
    Subject(
        name="Python SDK, ours",
        about="the agent of our interop tests, `tests/peers/python_agent.py`, which asks for permission",
        version=_python_sdk,
        command=lambda: (sys.executable, str(TEST_PEERS / "python_agent.py")),
        turns=PERMISSION,
    ),
    Subject(
        name="TypeScript SDK, agent",
        about="`dist/examples/agent.js` of the last version that is published with it; it plays a turn with permission",
        version=node_version("@agentclientprotocol/sdk"),
        command=node_command(NODE_PEERS / "node_modules/@agentclientprotocol/sdk/dist/examples/agent.js"),
    ),
    Subject(
        name="TypeScript SDK, ours",
        about="the agent of our interop tests, `tests/peers/typescript_agent.mjs`, which asks for permission",
        version=node_version("@agentclientprotocol/sdk", commands.NODE_MODULES),
        command=node_command(TEST_PEERS / "typescript_agent.mjs"),
        turns=PERMISSION,
    ),
    Subject(
        name="Python SDK v2, ours",
        about="the agent of our interop tests on the SDK's version 2, `tests/peers/python_v2_agent.py`",
        version=installed_version("acp-v2", "agent-client-protocol"),
        command=lambda: commands.peer("acp-v2", "python", str(TEST_PEERS / "python_v2_agent.py")),
        turns=PERMISSION,
        protocols=(2,),
    ),
    Subject(
        name="TypeScript SDK v2, ours",
        about="the agent of our interop tests on the SDK's version 2, `tests/peers/typescript_v2_agent.mjs`",
        version=node_version("@agentclientprotocol/sdk", commands.NODE_MODULES),
        command=node_command(TEST_PEERS / "typescript_v2_agent.mjs"),
        turns=PERMISSION,
        protocols=(2,),
    ),
    Subject(
        name="fast-agent",
        about="`fast-agent-acp -x` with its passthrough model, told to call its tools",
        version=installed_version("fast-agent", "fast-agent-mcp"),
        command=lambda: commands.peer("fast-agent", "fast-agent-acp", "-x", "--model", "passthrough"),
        turns=(
            ScriptTurn('***CALL_TOOL execute {"command":"echo checked"}'),
            ScriptTurn('***CALL_TOOL read_text_file {"path":"notes.txt"}'),
        ),
    ),
    Subject(
        name="pydantic-acp",
        about="`run_acp` around an agent whose scripted model reads a file and writes one with approval",
        version=installed_version("pydantic-acp", "pydantic-acp"),
        command=lambda: commands.peer("pydantic-acp", "python", str(commands.PEERS / "matrix_pydantic_agent.py")),
    ),
    Subject(
        name="deepagents-acp",
        about="`AgentServerACP` around a deep agent whose scripted model writes a file with approval",
        version=installed_version("deepagents-acp", "deepagents-acp"),
        command=lambda: commands.peer("deepagents-acp", "python", str(commands.PEERS / "matrix_deepagents_agent.py")),
    ),
    Subject(
        name="claude-agent-acp",
        about="without a key, so that it is asked nothing: the part before prompts",
        version=node_version("@agentclientprotocol/claude-agent-acp"),
        command=node_command(NODE_PEERS / "node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"),
        prompt=False,
        env={"IS_SANDBOX": "1"},  # without this it refuses to run as root
    ),
)

CLIENTS = (
    Subject(
        name="dragoman run",
        about="our own client, which may do all that it is asked",
        version=lambda: __version__,
        command=lambda: commands.dragoman_with_models("run", "--policy", "all", "hello", "--", PLACE),
        role="client",
        is_ours=True,
    ),
    Subject(
        name="Python SDK client, ours",
        about="the client of our interop tests on the SDK, `tests/peers/python_client.py`",
        version=_python_sdk,
        command=lambda: (
            *(sys.executable, str(TEST_PEERS / "python_client.py"), "--cwd", "/tmp", "--prompt", "hello"),
            *("--", PLACE),
        ),
        role="client",
    ),
    Subject(
        name="TypeScript SDK client, ours",
        about="the client of our interop tests on the SDK, `tests/peers/typescript_client.mjs`",
        version=node_version("@agentclientprotocol/sdk", commands.NODE_MODULES),
        command=node_command(TEST_PEERS / "typescript_client.mjs", "--cwd", "/tmp", "--prompt", "hello", "--", PLACE),
        role="client",
    ),
    Subject(
        name="Python SDK v2 client, ours",
        about="the client of our interop tests on the SDK's version 2, `tests/peers/python_v2_client.py`",
        version=installed_version("acp-v2", "agent-client-protocol"),
        command=lambda: (
            *commands.peer("acp-v2", "python", str(TEST_PEERS / "python_v2_client.py"), "--cwd", "/tmp"),
            *("--prompt", "hello", "--", PLACE),
        ),
        role="client",
        protocols=(2,),
    ),
    Subject(
        name="TypeScript SDK v2 client, ours",
        about="the client of our interop tests on the SDK's version 2, `tests/peers/typescript_v2_client.mjs`",
        version=node_version("@agentclientprotocol/sdk", commands.NODE_MODULES),
        command=node_command(
            TEST_PEERS / "typescript_v2_client.mjs", "--cwd", "/tmp", "--prompt", "hello", "--", PLACE
        ),
        role="client",
        protocols=(2,),
    ),
    Subject(
        name="acpx",
        about="`acpx --approve-all exec`",
        version=node_version("acpx"),
        command=node_command(
            NODE_PEERS / "node_modules/acpx/dist/cli.js", f"--agent={PLACE}", "--approve-all", "exec", "hello"
        ),
        role="client",
    ),
)
