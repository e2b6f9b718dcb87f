"""Functions that tests offer as tools, and a record of their calls."""

import asyncio
import threading

from dragoman.mcp.serving.function_call import Progress


class Functions:
    """Some functions, with switches."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.met = asyncio.Barrier(2)
        self.held = threading.Event()

    def all(self):
        return [self.add, self.greet, self.fail, self.wait, self.meet, self.count, self.block]

    def add(self, a: int, b: int = 1) -> dict:
        """Add two numbers.

        Args:
            a: the first
            b: the second
        """
        return {"sum": a + b}

    async def greet(self, name: str) -> str:
        """Return a greeting."""
        return f"grüezi {name}"

    def fail(self):
        """Fail."""
        raise LookupError("no such thing")

    async def wait(self):
        """Wait forever."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def meet(self):
        """Wait for another call of this function."""
        await self.met.wait()
        return "met"

    def count(self, to: int, progress: Progress):
        """Count and report the progress."""
        for number in range(1, to + 1):
            progress(number, to, f"at {number}")
        return "counted"

    def block(self):
        """Block a thread."""
        self.loop.call_soon_threadsafe(self.begun.set)
        self.held.wait(30)
