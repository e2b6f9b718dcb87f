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

from dragoman.cli.agent_choice import (
    OWN_COMMAND,
    check_commands,
    check_own_agent,
    choose_command,
    choose_directory,
    own_arguments,
)
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain, start_log
from dragoman.errors import DragomanError
from dragoman.event_loop import Stopped, run
from dragoman.files.private_file import next_step
from dragoman.home import home

if TYPE_CHECKING:
    from dragoman.bridge import AgentSpec, Bridge, Settings
    from dragoman.bridge.front.server import Tls
    from dragoman.cli.serve.address import ListenAddress
    from dragoman.cli.serve.notice import ServeNotice


OWN_NAME = "dragoman"

_NO_NAME = re.compile(r"[^a-z0-9._-]+")


class ServePlan(msgspec.Struct, frozen=True):
    """The agents to serve, and the address."""

    settings: "Settings"
    address: "ListenAddress"
    tls: "Tls | None"
    allow_hosts: list[str]
    allow_origins: list[str]
    public_url: str | None
    json: bool


def main(options: argparse.Namespace) -> int:
    """Serve until told to stop; 0 then, 1 when it cannot be done, 2 for a command line that makes no sense."""
    _check(options)
    _start_log()
    try:
        plan = _make_plan(options)
    except DragomanError as error:
        raise UsageError(str(error)) from None
    try:
        run(_serve(plan))
    except DragomanError as error:
        complain("serve", error)
        return 1
    except Stopped:
        return 0  # stopped while it started
    except BrokenPipeError:  # of stdout, as for every command
        raise
    except OSError as error:
        where = error.filename or home()
        step = next_step(error, "see that this user may write there, or have DRAGOMAN_HOME name another directory")
        complain("serve", f"{where}: {error.strerror or error}; {step}")
        return 1
    return 0


def _check(options: argparse.Namespace) -> None:
    is_own = options.command is None
    if options.agents and not is_own:
        raise UsageError("--agents names the agents; leave it out, or leave out -- CMD")
    if options.agents and options.name:
        raise UsageError("--name is for one agent; those of --agents have their names in that file")
    if (options.model or options.agent) and (options.agents or not is_own):
        raise UsageError(
            "--model and --agent are for dragoman's own agent; give another one its options after its command"
        )
    if bool(options.tls_cert) != bool(options.tls_key):
        raise UsageError("--tls-cert and --tls-key go together; one of them is missing")


def _start_log() -> None:
    """Log the records of dragoman alone; those of libraries have the headers of requests, and so the token."""
    level = start_log("WARNING", "dragoman: %(levelname)s: %(message)s")
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("dragoman").setLevel(level)


def _make_plan(options: argparse.Namespace) -> ServePlan:
    from dragoman.bridge import AgentLimits, Settings
    from dragoman.bridge.front.server import Tls
    from dragoman.bridge.guard import make_policy, new_token
    from dragoman.cli.serve.address import check_exposure, check_tls, resolve

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
    agents = _agents(options)
    check_commands(agents)
    if not options.agents and options.command is None:
        check_own_agent(options.model, options.agent)
    settings = Settings(
        agents=agents,
        home=home(),
        cwd=str(choose_directory(options.cwd).resolve()),
        agent_limits=AgentLimits(**{name: value for name, value in times.items() if value is not None}),
    )
    return ServePlan(settings, address, tls, json=options.format == "json", **lists)


def _agents(options: argparse.Namespace) -> "tuple[AgentSpec, ...]":
    from dragoman.bridge import AgentSpec, read_agents_file

    if options.agents:
        return read_agents_file(Path(options.agents).absolute())
    own = (*OWN_COMMAND, *own_arguments(options))
    command = own if options.command is None else tuple(choose_command(options.command))
    return (AgentSpec(options.name or _name(options.command), command),)


def _name(command: Sequence[str] | None) -> str:
    """Return the agent's name: the first word of its command, as it was given, in small letters."""
    if command is None:
        return OWN_NAME
    word = Path(command[0]).stem.lower()
    return _NO_NAME.sub("-", word).strip("-.") or "agent"


async def _serve(plan: ServePlan) -> None:
    """Serve until a signal comes; raises DragomanError and OSError."""
    from dragoman.bridge import Bridge
    from dragoman.store import raise_fd_limit

    raise_fd_limit()
    async with Bridge(plan.settings) as bridge:
        await _open(bridge, plan)


async def _open(bridge: "Bridge", plan: ServePlan) -> None:
    from dragoman.bridge.front.app import Application
    from dragoman.bridge.front.server import Server
    from dragoman.bridge.guard import Guard, keep_token, make_policy
    from dragoman.cli.serve.address import link_host, listen, names_for, prefix_of
    from dragoman.cli.serve.notice import EnterKey, ServeNotice

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
        notice = ServeNotice(f"{base_url.rstrip('/')}/", guard, plan.settings, json=plan.json)
        app = Application(bridge, guard, prefix=prefix_of(plan.public_url))
        async with Server(app, listener, tls=plan.tls, stall_s=plan.settings.viewer_limits.stall_s):
            notice.begin(token)
            EnterKey(notice.fresh_link).watch()
            await _until_stopped(notice)


async def _until_stopped(notice: "ServeNotice") -> None:
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
