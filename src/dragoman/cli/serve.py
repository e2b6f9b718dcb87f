"""`dragoman serve`: put an agent behind one address, for browsers and for ACP clients."""

import argparse
import asyncio
import logging
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman.cli.command import split_command
from dragoman.cli.home import home
from dragoman.cli.loop import Stopped, run
from dragoman.cli.output import complain, start_log
from dragoman.cli.serve_options import make_parser
from dragoman.errors import DragomanError
from dragoman.files.private_file import next_step

if TYPE_CHECKING:
    from dragoman.bridge import AgentSpec, Bridge, Settings
    from dragoman.bridge.front.server import Tls
    from dragoman.cli.serve_address import Address
    from dragoman.cli.serve_notice import Notice

OWN_NAME = "dragoman"

_NO_NAME = re.compile(r"[^a-z0-9._-]+")


class Plan(msgspec.Struct, frozen=True):
    """What is to be served, and where."""

    settings: "Settings"
    address: "Address"
    tls: "Tls | None"
    allow_hosts: list[str]
    allow_origins: list[str]
    public_url: str | None
    json: bool


def main(argv: Sequence[str]) -> int:
    """Serve until told to stop; 0 then, 1 when it cannot be done, 2 for a command line that makes no sense."""
    own, command = split_command(argv)
    parser = make_parser()
    options = parser.parse_args(own)
    if not command:
        parser.error("there is no command after --; name an agent, or leave -- out to use dragoman's own")
    _check(parser, options, is_own="--" not in argv)
    _start_log()
    try:
        plan = _make_plan(options, command, argv)
    except DragomanError as error:
        parser.error(str(error))
    try:
        run(_serve(plan))
    except DragomanError as error:
        complain("serve", error)
        return 1
    except Stopped:
        return 0  # stopped while it started
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = error.filename or home()
        step = next_step(error, "see that this user may write there, or have DRAGOMAN_HOME name another directory")
        complain("serve", f"{where}: {error.strerror or error}; {step}")
        return 1
    return 0


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace, *, is_own: bool) -> None:
    if options.agents and not is_own:
        parser.error("--agents names the agents; leave it out, or leave out -- CMD")
    if options.agents and options.name:
        parser.error("--name is for one agent; those of --agents have their names in that file")
    if (options.model or options.agent) and (options.agents or not is_own):
        parser.error("--model and --agent are for dragoman's own agent; give another one its options after its command")
    if bool(options.tls_cert) != bool(options.tls_key):
        parser.error("--tls-cert and --tls-key go together; one of them is missing")
    if not Path(options.cwd).is_dir():
        parser.error(f"--cwd: {Path(options.cwd).absolute()} is no directory")


def _start_log() -> None:
    """Log what dragoman does; libraries below it would tell the headers of requests, and so the token."""
    level = start_log("WARNING", "dragoman: %(levelname)s: %(message)s")
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("dragoman").setLevel(level)


def _make_plan(options: argparse.Namespace, command: list[str], argv: Sequence[str]) -> Plan:
    from dragoman.bridge import Settings
    from dragoman.bridge.front.server import Tls
    from dragoman.bridge.guard import make_policy, new_token
    from dragoman.cli.agent_checks import check_commands, check_own_agent
    from dragoman.cli.serve_address import check_exposure, check_tls, resolve

    address = resolve(options.host, options.port)
    tls = Tls(Path(options.tls_cert), Path(options.tls_key)) if options.tls_cert else None
    if tls is not None:
        check_tls(tls)
    check_exposure(address, tls, insecure=options.insecure_network)
    lists = {"allow_hosts": options.allow_host, "allow_origins": options.allow_origin, "public_url": options.public_url}
    make_policy(new_token(), names=(), port=1, **lists)  # what is wrong with them is to be said now
    times = {
        "permission_timeout_s": options.permission_timeout,
        "idle_stop_s": options.idle_stop,
        "open_timeout_s": options.open_timeout,
    }
    agents = _agents(options, command, argv)
    check_commands(agents)
    if not options.agents and "--" not in argv:
        check_own_agent(options.model, Path(options.agent) if options.agent else None)
    settings = Settings(
        agents=agents,
        home=home(),
        cwd=str(Path(options.cwd).resolve()),
        **{name: value for name, value in times.items() if value is not None},
    )
    return Plan(settings, address, tls, json=options.json, **lists)


def _agents(options: argparse.Namespace, command: list[str], argv: Sequence[str]) -> "tuple[AgentSpec, ...]":
    from dragoman.bridge import AgentSpec, read_agents_file

    if options.agents:
        return read_agents_file(Path(options.agents).absolute())
    given = {"--model": options.model, "--agent": options.agent and str(Path(options.agent).absolute())}
    words = [word for name, value in given.items() if value for word in (name, value)]
    return (AgentSpec(_name(options.name, argv), (*command, *words)),)


def _name(given: str | None, argv: Sequence[str]) -> str:
    """Return the agent's name: the one that was given, or the first word of its command in small letters."""
    if given:
        return given
    if "--" not in argv:
        return OWN_NAME
    word = Path(argv[list(argv).index("--") + 1]).stem.lower()
    return _NO_NAME.sub("-", word).strip("-.") or "agent"


async def _serve(plan: Plan) -> None:
    """Serve until a signal comes; raises DragomanError and OSError."""
    from dragoman.bridge import Bridge
    from dragoman.store import raise_fd_limit

    raise_fd_limit()
    async with Bridge(plan.settings) as bridge:
        await _open(bridge, plan)


async def _open(bridge: "Bridge", plan: Plan) -> None:
    from dragoman.bridge.front.app import Application
    from dragoman.bridge.front.server import Server
    from dragoman.bridge.guard import Guard, keep_token, make_policy
    from dragoman.cli.serve_address import link_host, listen, names_for, prefix_of
    from dragoman.cli.serve_keys import EnterKey
    from dragoman.cli.serve_notice import Notice

    token = keep_token(plan.settings.home / "bridge")
    with listen(plan.address) as listener:
        port: int = listener.getsockname()[1]
        policy = make_policy(
            token,
            names=names_for(plan.address),
            port=port,
            is_tls=plan.tls is not None,
            allow_hosts=plan.allow_hosts,
            allow_origins=plan.allow_origins,
            public_url=plan.public_url,
        )
        guard = Guard(policy)
        base_url = plan.public_url or f"http{'s' if plan.tls else ''}://{link_host(plan.address)}:{port}/"
        notice = Notice(f"{base_url.rstrip('/')}/", guard, plan.settings, json=plan.json)
        app = Application(bridge, guard, prefix=prefix_of(plan.public_url))
        async with Server(app, listener, tls=plan.tls, stall_s=plan.settings.viewer_stall_s):
            notice.begin(token)
            EnterKey(notice.fresh_link).watch()
            await _until_stopped(notice)


async def _until_stopped(notice: "Notice") -> None:
    """Wait for a signal. The first one lets everything end in order; a second Ctrl-C does not wait for that."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()

    def stop(number: int) -> None:
        if told.is_set() and number == signal.SIGINT:
            os._exit(128 + number)  # their monitor processes end the agents
        if not told.is_set():
            told.set()
            notice.stopping()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    await told.wait()
