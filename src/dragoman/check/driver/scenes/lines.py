"""Lines that are no messages, or more than most."""

from dragoman.check.driver.stage import Stage
from dragoman.check.judge import INVENTED

STRANGE = (
    b"this is no JSON",
    b'{"jsonrpc":"2.0","id":77,"method":',
    b"42",
    b"[]",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":987654,"result":{}}',
)
NOT_TEXT = b'{"jsonrpc":"2.0","method":"_dragoman.check/\xff"}'

LONG_BYTES = 1_000_000


async def strange_lines(stage: Stage) -> None:
    """Send lines that are no messages, each followed by a request that is one."""
    async with stage.greeted("strange lines") as link:
        # In a WebSocket, what is not UTF-8 ends the connection before anybody reads the line.
        for line in (*STRANGE, *([NOT_TEXT] if stage.has_process else [])):
            link.send(line)
            if await link.request(f"_{INVENTED}method", {}, stage.options.timeout_s) is None:
                return


async def long_line(stage: Stage) -> None:
    """Send a message of a megabyte."""
    async with stage.greeted("a long line") as link:
        await link.request(f"_{INVENTED}method", {"long": "x" * LONG_BYTES}, stage.options.timeout_s)
