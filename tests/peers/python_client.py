"""A client on the official Python SDK that runs one scenario against an agent and prints its messages.

    python_client.py --cwd DIR [--load ID] [--prompt TEXT]... [--answer yes|no|cancel] [--cancel-after N] -- CMD ARGS...

Stdout is one JSON object: ``{"initialize", "sessionId", "loaded": [updates], "prompts": [{"stopReason", "updates",
"permissions"}]}``, or ``{"error"}`` with exit status 1. Values are what the SDK's models took in, with wire
names and without fields that the agent did not send.
"""

import argparse
import asyncio
import json
import os
import sys
from typing import Any

import acp
from acp.schema import AllowedOutcome, DeniedOutcome, Implementation, PermissionOption, ToolCallUpdate
from pydantic import BaseModel

QUIET_S = 0.2
FIRST_UPDATE_LOOKS = 100
"""Over HTTP the SDK opens the stream of a loaded session only after the response."""
TIMEOUT_S = 30
OPTION_KIND = {"yes": "allow_", "no": "reject_"}


def to_wire(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


class RecordingClient:
    _agent: acp.Agent

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self._cancel_after: int | None = None
        self._cancelled = False
        self.updates: list[dict[str, Any]] = []
        self.permissions: list[dict[str, Any]] = []

    def on_connect(self, conn: acp.Agent) -> None:
        self._agent = conn

    def begin_turn(self, cancel_after: int | None) -> None:
        self.updates = []
        self.permissions = []
        self._cancel_after = cancel_after
        self._cancelled = False

    async def session_update(self, session_id: str, update: BaseModel, **_: Any) -> None:
        self.updates.append(to_wire(update))
        if len(self.updates) == self._cancel_after:
            self._cancelled = True
            await self._agent.cancel(session_id)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> acp.RequestPermissionResponse:
        self.permissions.append({"toolCall": to_wire(tool_call), "options": [to_wire(option) for option in options]})
        # After a turn is cancelled, the client must answer its permission requests with this outcome.
        if self._cancelled or self._answer == "cancel":
            return acp.RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        wanted = OPTION_KIND[self._answer]
        option_id = next(option.option_id for option in options if option.kind.startswith(wanted))
        return acp.RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option_id))


async def run_scenario(options: argparse.Namespace, command: list[str]) -> dict[str, Any]:
    client = RecordingClient(options.answer)
    # By default the SDK pipes the agent's stderr without reading it, and passes on six variables.
    async with acp.spawn_agent_process(client, *command, env=os.environ, transport_kwargs={"stderr": None}) as (
        agent,
        process,
    ):
        asyncio.get_running_loop().call_later(TIMEOUT_S, give_up, process)
        return await converse(agent, client, options)


async def converse(agent: acp.Agent, client: RecordingClient, options: argparse.Namespace) -> dict[str, Any]:
    initialized = await agent.initialize(
        protocol_version=acp.PROTOCOL_VERSION,
        client_info=Implementation(name="python-sdk-client", version="0.12.1"),
    )
    session_id, loaded = options.load, None
    if session_id is None:
        session_id = (await agent.new_session(cwd=options.cwd, mcp_servers=[])).session_id
    else:
        await agent.load_session(cwd=options.cwd, session_id=session_id, mcp_servers=[])
        loaded = await settled(client.updates)
    prompts = []
    for number, text in enumerate(options.prompt, start=1):
        client.begin_turn(options.cancel_after if number == len(options.prompt) else None)
        response = await agent.prompt(session_id=session_id, prompt=[acp.text_block(text)])
        prompts.append(
            {
                "stopReason": response.stop_reason,
                "updates": client.updates,
                "permissions": client.permissions,
            }
        )
    return {"initialize": to_wire(initialized), "sessionId": session_id, "loaded": loaded, "prompts": prompts}


async def settled(updates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Wait until no more updates arrive. The SDK returns a load's response before it has handled the replay."""
    for _ in range(FIRST_UPDATE_LOOKS):
        if updates:
            break
        await asyncio.sleep(QUIET_S)
    count = -1
    while count != len(updates):
        count = len(updates)
        await asyncio.sleep(QUIET_S)
    return updates


def give_up(process: asyncio.subprocess.Process) -> None:
    """Exit immediately. The SDK's own close waits for a write that a deaf agent blocks."""
    if process.returncode is None:
        process.kill()
    print(json.dumps({"error": f"timed out after {TIMEOUT_S} s"}), flush=True)
    os._exit(1)


def describe(error: BaseException) -> str:
    if isinstance(error, acp.RequestError):
        return f"{error.code} {error}: {json.dumps(error.data)}"
    return f"{type(error).__name__}: {error}"


def parse_arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(usage="%(prog)s --cwd DIR [options] -- CMD ARGS...")
    parser.add_argument("--cwd", required=True)
    parser.add_argument("--load")
    parser.add_argument("--prompt", action="append", default=[])
    parser.add_argument("--answer", choices=["yes", "no", "cancel"], default="yes")
    parser.add_argument("--cancel-after", type=int)
    split = argv.index("--") if "--" in argv else len(argv)
    options, command = parser.parse_args(argv[:split]), argv[split + 1 :]
    if not command:
        parser.error("an agent command is needed after --")
    return options, command


def main() -> int:
    options, command = parse_arguments(sys.argv[1:])
    try:
        report = asyncio.run(run_scenario(options, command))
    except Exception as error:  # noqa: BLE001 - the top of the process: every failure becomes the report
        print(json.dumps({"error": describe(error)}))
        return 1
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
