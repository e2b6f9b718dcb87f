"""`dragoman agent`: serve ACP on stdin and stdout."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dragoman.assistant import ConfiguredModel, make_agent
from dragoman.cli.exit_codes import USAGE
from dragoman.cli.output import print_error, start_log
from dragoman.errors import DragomanError
from dragoman.event_loop import run
from dragoman.home import home_name
from dragoman.wire import StdioTransport, claim_stdio

if TYPE_CHECKING:
    from argparse import Namespace

    from dragoman.assistant.setup import AgentSetup
    from dragoman.sandbox import SandboxMode
    from dragoman.store import Store


class AgentArguments(NamedTuple):
    """The command-line options of `dragoman agent`."""

    model: str | None = None
    agent: str | None = None
    login: str | None = None
    program: str | None = None
    store: str | None = None
    sandbox: "SandboxMode | None" = None


def main(parsed: "Namespace | None" = None) -> int:
    """Serve until the client closes stdin. `parsed` is None when the command line has no options."""
    options = AgentArguments() if parsed is None else _arguments(parsed)
    if options.login is not None:
        from dragoman.cli.login import log_in

        return log_in(options.login)
    if options.program is not None:
        from dragoman.cli.program import run_program

        return run_program(options.program, options.model or options.agent or options.sandbox, options.store)
    start_log("WARNING", "dragoman: %(levelname)s: %(message)s")
    try:
        make_setup = _prepare(options)
        store = _find_store(options.store)
        read_fd, write_fd = claim_stdio()
        run(_serve(read_fd, write_fd, make_setup, lambda: _find_model(options), store))
    except DragomanError as error:
        print_error("agent", error)
        return USAGE
    return 0


def _arguments(options: "Namespace") -> AgentArguments:
    return AgentArguments(options.model, options.agent, options.login, options.program, options.store, options.sandbox)


async def _serve(
    read_fd: int,
    write_fd: int,
    make_setup: "Callable[[], AgentSetup]",
    find_model: Callable[[], ConfiguredModel],
    store: str | None,
) -> None:
    agent = make_agent(lambda: _open_store(store), make_setup, find_model)
    await agent.serve(StdioTransport(read_fd, write_fd))


def _find_model(options: AgentArguments) -> ConfiguredModel:
    """Find the login method and accepted inputs of the model for new sessions.

    Imports nothing if no model is configured.
    """
    default = os.environ.get("DRAGOMAN_MODEL")
    home = home_name()
    is_plain = options._replace(store=None, sandbox=None) == AgentArguments() and default is None
    files = (f"{home}/dragoman.yaml", f"{home}/preferences.json")
    if is_plain and not any(os.path.exists(file) for file in files):  # noqa: PTH110 -- as above
        return ConfiguredModel()
    from dragoman.assistant.auth import configured_model, find_auth
    from dragoman.assistant.models import content_types_by_name

    found = configured_model(home, model=options.model, agent_file=options.agent, default_model=default)
    return ConfiguredModel(find_auth(found.login_model, home), content_types_by_name(found.name))


def _find_store(option: str | None) -> str | None:
    """Check the database address before serving. Imports nothing if there is none."""
    if option is None and "DRAGOMAN_STORE" not in os.environ:
        return None
    from dragoman.store import find_address

    return find_address(option)


def _open_store(address: str | None) -> "Store":
    from dragoman.home import home
    from dragoman.store import log_scope, open_store

    return open_store(address, home(), log_scope())


def _prepare(options: AgentArguments) -> "Callable[[], AgentSetup]":
    """Check the options before serving. The rest is imported with the first session."""
    default = os.environ.get("DRAGOMAN_MODEL")
    if options._replace(store=None) == AgentArguments() and default is None:
        return _make_setup
    if options.agent is not None and (not os.path.exists(options.agent) or os.path.isdir(options.agent)):  # noqa: PTH110, PTH112 -- as above
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
        return AgentSetup(
            home(), model=model, default_model=default_model, agent_file=agent_file, sandbox=options.sandbox
        )

    return make_setup


def _make_setup() -> "AgentSetup":
    from dragoman.assistant.setup import AgentSetup
    from dragoman.home import home

    return AgentSetup(home())
