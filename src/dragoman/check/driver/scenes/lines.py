"""Lines that are no messages, or more than most."""

from dragoman.check.driver.desk import Object
from dragoman.check.driver.scenes.sessions import tidy
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
    async with stage.joined("strange lines") as link:
        # In a WebSocket, what is not UTF-8 ends the connection before anybody reads the line.
        for line in (*STRANGE, *([NOT_TEXT] if stage.has_process else [])):
            link.send(line)
            if await link.request(f"_{INVENTED}method", {}, stage.options.timeout_s) is None:
                return


async def long_line(stage: Stage) -> None:
    """Send a message of a megabyte."""
    params: Object = {"cwd": str(stage.directory("long")), "mcpServers": []}
    async with stage.joined("a long line") as link:
        # The same comes in short before it: who does not answer that is not blamed for the length of the line.
        for meta in ("short", "x" * LONG_BYTES):
            sent = {**params, "_meta": {"dragoman.check": meta}}
            reply = await link.request("session/new", sent, stage.options.turn_timeout_s)
            if reply is None:
                return
            session_id = reply.fields.get("sessionId")
            if isinstance(session_id, str):
                await tidy(stage, link, session_id)
