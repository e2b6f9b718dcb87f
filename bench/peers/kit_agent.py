"""An agent made with the kit, `dragoman.agent`, that does the same as the other bench agents and stores its sessions.

The text of a prompt is a JSON object with optional fields: ``chunks`` updates of ``size`` characters each, yielding to
the event loop after each if ``yield`` is true, then one update of ``bytes`` characters.
"""

import asyncio
import json

from dragoman.agent import Agent, Turn

agent = Agent("bench", version="1.0.0")


@agent.on_prompt
async def answer(turn: Turn) -> None:
    order = json.loads(turn.text)
    text = "x" * order.get("size", 0)
    for _ in range(order.get("chunks", 0)):
        await turn.say(text)
        if order.get("yield"):
            await asyncio.sleep(0)
    if order.get("bytes"):
        await turn.say("x" * order["bytes"])


if __name__ == "__main__":
    agent.run()
