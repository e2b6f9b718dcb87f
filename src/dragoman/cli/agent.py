"""`dragoman agent`: serve ACP on stdin and stdout."""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dragoman.agent import Agent
from dragoman.agent.models import find_model
from dragoman.cli.loop import Stopped, run
from dragoman.errors import DragomanError
from dragoman.wire import StdioTransport, take_stdio

if TYPE_CHECKING:
    from dragoman.agent.models.model import Model
    from dragoman.store import Store


def main(argv: Sequence[str]) -> int:
    """Serve until the client closes stdin."""
    model = _parse(argv) if argv else os.environ.get("DRAGOMAN_MODEL")
    logging.basicConfig(
        stream=sys.stderr,
        level=os.environ.get("DRAGOMAN_LOG", "WARNING").upper(),
        format="dragoman: %(levelname)s: %(message)s",
    )
    try:
        load_model = find_model(model)
        read_fd, write_fd = take_stdio()
        run(_serve(read_fd, write_fd, load_model))
    except DragomanError as error:
        print(f"dragoman agent: {error}", file=sys.stderr)
        return 2
    except Stopped as stopped:
        return 128 + stopped.signal_number
    return 0


async def _serve(read_fd: int, write_fd: int, load_model: "Callable[[], Model]") -> None:
    await Agent(StdioTransport(read_fd, write_fd), _open_store, load_model).serve()


def _open_store() -> "Store":
    from dragoman.cli.home import home
    from dragoman.store import FileStore, raise_fd_limit

    raise_fd_limit()
    return FileStore(home())


def _parse(argv: Sequence[str]) -> str | None:
    # Most editors start us without options, and argparse takes a megabyte and 5 ms.
    import argparse

    parser = argparse.ArgumentParser(
        prog="dragoman agent",
        description="Serve ACP on stdin and stdout, for an editor to start.",
        epilog="Sessions are kept under $DRAGOMAN_HOME (~/.dragoman). DRAGOMAN_LOG=debug writes a log to stderr.",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        default=os.environ.get("DRAGOMAN_MODEL"),
        help="the model to talk with: script:FILE (default: $DRAGOMAN_MODEL, else a short demonstration)",
    )
    return parser.parse_args(argv).model
