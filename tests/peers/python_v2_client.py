"""A client on the experimental version 2 API of the official Python SDK, with the scenario of typescript_v2_client.mjs.

It requires an SDK release with that API, in its own environment (see `tests/interop/peers.py`).
"""

import argparse
import asyncio
import json
import sys

from acp.experimental import v2

KINDS = {"yes": "allow_", "no": "reject_"}


class Turn:
    def __init__(self, cancel_after=0):
        self.updates, self.permissions = [], []
        self.cancel_after = cancel_after
        self.chunks = 0
        self.has_run = False
        self.stop_reason = asyncio.get_running_loop().create_future()


class Client:
    def __init__(self, answer):
        self.answer = answer
        self.turn = Turn()

    def on_connect(self, connection):
        self.connection = connection

    async def request_permission(self, session_id, title, options, **more):
        self.turn.permissions.append({"title": title, "subject": dump(more["subject"])})
        if self.answer == "cancel":
            return v2.schema.RequestPermissionResponse(outcome={"outcome": "cancelled"})
        option = next(each for each in options if each.kind.startswith(KINDS[self.answer]))
        return v2.schema.RequestPermissionResponse(outcome={"outcome": "selected", "optionId": option.option_id})

    async def session_update(self, session_id, update, **_):
        fields, turn = dump(update), self.turn
        turn.updates.append(fields)
        turn.chunks += fields["sessionUpdate"] == "agent_message_chunk"
        if turn.chunks and turn.chunks == turn.cancel_after:
            turn.cancel_after = 0
            await self.connection.cancel_session(session_id)
        turn.has_run |= fields.get("state") == "running"
        if fields.get("state") == "idle" and turn.has_run and not turn.stop_reason.done():
            turn.stop_reason.set_result(fields.get("stopReason"))


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def converse(client, connection, options):
    info = {"name": "python-v2-client", "version": "1.0.0"}
    initialized = await connection.initialize(protocol_version=2, info=info)
    report = {"initialize": dump(initialized), "resumed": None, "prompts": []}
    if options.resume is None:
        report["sessionId"] = (await connection.new_session(cwd=options.cwd)).session_id
    else:
        report["sessionId"] = options.resume
        await connection.resume_session(cwd=options.cwd, session_id=options.resume, replay_from={"type": "start"})
        report["resumed"] = client.turn.updates
    session_id = report["sessionId"]
    for index, text in enumerate(options.prompt):
        client.turn = turn = Turn(options.cancel_after if index == len(options.prompt) - 1 else 0)
        answer = await connection.prompt(
            session_id=session_id, prompt=[v2.schema.TextContentBlock(type="text", text=text)]
        )
        reason = await turn.stop_reason
        fields = {"updates": turn.updates, "permissions": turn.permissions}
        report["prompts"].append({"messageId": answer.message_id, "stopReason": reason, **fields})
    await connection.close_session(session_id)
    listed = await connection.list_sessions(cwd=options.cwd)
    report["listed"] = [each.session_id for each in listed.sessions]
    return report


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cwd")
    parser.add_argument("--resume")
    parser.add_argument("--prompt", action="append", default=[])
    parser.add_argument("--answer", default="yes")
    parser.add_argument("--cancel-after", type=int, default=0)
    split = sys.argv.index("--")
    options, command = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**24
    )
    client = Client(options.answer)
    async with asyncio.timeout(30), v2.connect_to_agent(client, child.stdin, child.stdout) as connection:
        print(json.dumps(await converse(client, connection, options)))
    child.stdin.close()
    await child.wait()


asyncio.run(main())
