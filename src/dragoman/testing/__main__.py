"""`python -m dragoman.testing JSON` runs the scripted agent on stdio."""

import asyncio
import sys

from dragoman.testing import ScriptedAgent, load_turns
from dragoman.wire import StdioTransport, claim_stdio


async def _serve() -> None:
    await ScriptedAgent(StdioTransport(*claim_stdio()), load_turns(sys.argv[1])).serve()


if __name__ == "__main__":
    asyncio.run(_serve())
