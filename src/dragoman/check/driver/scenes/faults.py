"""What happens to programs."""

from dragoman.check.driver.stage import Stage


async def close_input(stage: Stage) -> None:
    """Leave, as an editor does: close its stdin, and see that it ends."""
    if not stage.has_process:
        return
    async with stage.joined("stdin closed") as link:
        await stage.new_session(link, "closed")
        if await link.leave(stage.options.exit_timeout_s):
            await link.see_orphans()


async def close_in_mid_line(stage: Stage) -> None:
    """Die, as an editor does: in the middle of a message."""
    if not stage.has_process:
        return
    async with stage.joined("stdin closed in the middle of a line") as link:
        link.send_part(b'{"jsonrpc":"2.0","id":5,"method":"session/n')
        await link.leave(stage.options.exit_timeout_s)
