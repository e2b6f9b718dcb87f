"""`dragoman agent`: serve ACP on stdin and stdout."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dragoman.assistant import ConfiguredModel, make_agent
from dragoman.cli.output import complain, start_log
from dragoman.errors import DragomanError
from dragoman.event_loop import Stopped, run
from dragoman.home import home_name
from dragoman.wire import StdioTransport, take_stdio

if TYPE_CHECKING:
    from argparse import Namespace

    from dragoman.assistant.setup import AgentSetup
    from dragoman.store import Store


class AgentArguments(NamedTuple):
    """The options of the command line."""

    model: str | None = None
    agent: str | None = None
    login: str | None = None
    program: str | None = None


def main(given: "Namespace | None" = None) -> int:
    """Serve until the client closes stdin; None is for a command line without options."""
    options = AgentArguments() if given is None else _arguments(given)
    if options.login is not None:
        from dragoman.cli.login import log_in

        return log_in(options.login)
    if options.program is not None:
        from dragoman.cli.program import run_program

        return run_program(options.program, options.model or options.agent)
    start_log("WARNING", "dragoman: %(levelname)s: %(message)s")
    try:
        make_setup = _prepare(options)
        read_fd, write_fd = take_stdio()
        run(_serve(read_fd, write_fd, make_setup, lambda: _find_model(options)))
    except DragomanError as error:
        complain("agent", error)
        return 2
    except Stopped as stopped:
        return 128 + stopped.signal_number
    return 0


def _arguments(given: "Namespace") -> AgentArguments:
    return AgentArguments(given.model, given.agent, given.login, given.program)


async def _serve(
    read_fd: int, write_fd: int, make_setup: "Callable[[], AgentSetup]", find_model: Callable[[], ConfiguredModel]
) -> None:
    await make_agent(_open_store, make_setup, find_model).serve(StdioTransport(read_fd, write_fd))


def _find_model(options: AgentArguments) -> ConfiguredModel:
    """Find the login and the inputs of the model of new sessions; without a configured model nothing is imported."""
    default = os.environ.get("DRAGOMAN_MODEL")
    home = home_name()
    if options == AgentArguments() and default is None and not os.path.exists(f"{home}/dragoman.yaml"):  # noqa: PTH110 -- as above
        return ConfiguredModel()
    from dragoman.assistant.auth import configured_model, find_auth
    from dragoman.assistant.models import takes_by_name

    found = configured_model(home, model=options.model, agent_file=options.agent, default_model=default)
    return ConfiguredModel(find_auth(found.asks_login, home), takes_by_name(found.name))


def _open_store() -> "Store":
    from dragoman.home import home
    from dragoman.store import FileStore, raise_fd_limit

    raise_fd_limit()
    return FileStore(home())


def _prepare(options: AgentArguments) -> "Callable[[], AgentSetup]":
    """Check the options now; the rest is made when the first session comes."""
    default = os.environ.get("DRAGOMAN_MODEL")
    if options == AgentArguments() and default is None:
        return _make_setup
    if options.agent is not None and not os.path.exists(options.agent):  # noqa: PTH110 -- as above
        from pathlib import Path

        from dragoman.assistant.profile.choice import find_explicit

        find_explicit(Path(options.agent))
    from dragoman.assistant.models import find_model

    model = find_model(options.model) if options.model else None
    default_model = find_model(default) if default else None

    def make_setup() -> "AgentSetup":
        from pathlib import Path

        from dragoman.assistant.setup import AgentSetup
        from dragoman.home import home

        agent_file = Path(options.agent).absolute() if options.agent else None
        return AgentSetup(home(), model=model, default_model=default_model, agent_file=agent_file)

    return make_setup


def _make_setup() -> "AgentSetup":
    from dragoman.assistant.setup import AgentSetup
    from dragoman.home import home

    return AgentSetup(home())
