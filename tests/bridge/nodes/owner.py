"""A node in a separate process that tests kill or stop: `owner.py JSON`.

It creates a session, prints its id, waits for a file, sends a prompt with steps, and prints the answer.
"""

import asyncio
import json
import sys
from pathlib import Path

from dragoman.bridge import AgentSpec
from tests.bridge.viewers import join, serve

SETTINGS = json.loads(sys.argv[1])


async def main():
    spec = AgentSpec("one", tuple(SETTINGS["agent"]), env=SETTINGS["env"])
    async with serve(Path(SETTINGS["home"]), spec, store=SETTINGS["store"], lease_s=SETTINGS["lease_s"]) as served:
        viewer = await join(served, extensions=True)
        session = await viewer.new(SETTINGS["cwd"])
        print(session, flush=True)
        while not Path(SETTINGS["go"]).exists():
            await asyncio.sleep(0.01)
        answer = await viewer.prompt(session, *SETTINGS["steps"])
        print(json.dumps(answer), flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
