"""`dragoman serve`: serve an agent to browsers and ACP clients."""

import argparse
import asyncio
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.assistant.preferences import PreferenceFile
from dragoman.catalog.installed import find_agents
from dragoman.cli.agent_choice import (
    OWN_COMMAND,
    check_commands,
    check_own_agent,
    check_sandbox,
    choose_command,
    choose_command_in_place,
    choose_directory,
    has_place,
    own_arguments,
    served_name,
)
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error, start_log
from dragoman.errors import DragomanError, SessionBusyError
from dragoman.event_loop import StoppedError, run
from dragoman.files.private_file import next_step
from dragoman.home import home

if TYPE_CHECKING:
    from dragoman.bridge import AgentSpec, Bridge, BridgeSettings
    from dragoman.bridge.front.limits import ServerLimits
    from dragoman.bridge.front.server import Tls
    from dragoman.cli.serve.address import ListenAddress
    from dragoman.cli.serve.notice import ServeNotice


class ServePlan(msgspec.Struct, frozen=True):
    """The agents and the address to serve."""

    settings: "BridgeSettings"
    address: "ListenAddress"
    tls: "Tls | None"
    allow_hosts: list[str]
    allow_origins: list[str]
    public_url: str | None
    json: bool
    open_browser: bool


def main(options: argparse.Namespace) -> int:
    """Serve until a signal stops it. Return 0 then, or 1 if the bridge cannot serve. Raises UsageError."""
    _check(options)
    _start_log()
    try:
        plan = _make_plan(options)
    except DragomanError as error:
        raise UsageError(str(error)) from None
    try:
        run(_serve(plan))
    except DragomanError as error:
        print_error("serve", error)
        return 1
    except StoppedError:
        return 0  # stopped during startup
    except BrokenPipeError:  # of stdout, handled in `dragoman.cli.main`
        raise
    except OSError as error:
        where = error.filename or home()
        step = next_step(error, "check the permissions, or set DRAGOMAN_HOME to another directory")
        print_error("serve", f"{where}: {error.strerror or error}; {step}")
        return 1
    return 0


def _check(options: argparse.Namespace) -> None:
    is_own = options.command is None
    if options.agents_file and not is_own:
        raise UsageError("--agents-file names the agents; leave it out, or leave out -- CMD")
    if options.agents_file and options.agent_name:
        raise UsageError("--agent-name names a single agent; leave it out, because --agents-file names its agents")
    if (options.model or options.agent) and (options.agents_file or not is_own):
        raise UsageError(
            "--model and --agent are for dragoman's own agent; pass options to another agent after its command"
        )
    check_sandbox(options)
    if bool(options.tls_cert) != bool(options.tls_key):
        raise UsageError("--tls-cert and --tls-key must be used together; one is missing")


def _start_log() -> None:
    """Log only dragoman's records. Libraries log request headers, and so the token."""
    level = start_log("WARNING", "dragoman: %(levelname)s: %(message)s")
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("dragoman").setLevel(level)


def _make_plan(options: argparse.Namespace) -> ServePlan:
    from dragoman.bridge import AgentLimits, BridgeSettings
    from dragoman.bridge.front.server import Tls
    from dragoman.bridge.guard import make_policy, new_token
    from dragoman.cli.browser import is_at_terminal, should_open
    from dragoman.cli.serve.address import check_exposure, check_tls, resolve
    from dragoman.store import find_address, read_lease

    address = resolve(options.host, options.port)
    tls = Tls(Path(options.tls_cert), Path(options.tls_key)) if options.tls_cert else None
    if tls is not None:
        check_tls(tls)
    check_exposure(address, tls, insecure=options.insecure_network)
    lists = {"allow_hosts": options.allow_host, "allow_origins": options.allow_origin, "public_url": options.public_url}
    make_policy(new_token(), names=(), port=1, **lists)  # report invalid settings before the start
    times = {
        "permission_timeout_s": options.permission_timeout,
        "idle_stop_s": options.idle_timeout,
        "open_timeout_s": options.open_timeout,
    }
    store = find_address(options.store)
    agents = _agents(options, store)
    check_commands(agents)
    if not options.agents_file and options.command is None and options.place is None:
        check_own_agent(options.model, options.agent)
    settings = BridgeSettings(
        agents=agents,
        home=home(),
        cwd=_choose_cwd(options),
        store=store,
        lease_s=None if store is None else read_lease(),
        agent_limits=AgentLimits(**{name: value for name, value in times.items() if value is not None}),
    )
    is_json = options.format == "json"
    is_interactive = not is_json and options.public_url is None and is_at_terminal()
    opens = should_open(options.open, os.environ, is_terminal=is_interactive)
    return ServePlan(settings, address, tls, json=is_json, open_browser=opens, **lists)


def _choose_cwd(options: argparse.Namespace) -> str:
    """Return the directory that the page proposes. With ssh and no --map, it is a path on the other machine."""
    if not (options.place or "").startswith("ssh:") or options.map:
        return str(choose_directory(options.cwd).resolve())
    if not options.cwd.startswith("/"):
        problem = f"no working directory on {options.place.removeprefix('ssh:')}?"
        raise UsageError(f"{problem}; add --cwd with an absolute path there, or --map LOCAL=REMOTE")
    return str(options.cwd)


def _agents(options: argparse.Namespace, store: str | None) -> "tuple[AgentSpec, ...]":
    from dragoman.bridge import AgentSpec, read_agents_file
    from dragoman.store import STORE_VARIABLE

    if options.agents_file:
        return read_agents_file(Path(options.agents_file).absolute())
    if has_place(options):
        return (AgentSpec(options.agent_name or served_name(options.command), tuple(choose_command_in_place(options))),)
    if options.command is not None:
        command = tuple(choose_command(options.command))
        return (AgentSpec(options.agent_name or served_name(options.command), command),)
    arguments = own_arguments(options)
    # Our own agent stores its sessions next to the bridge's journals, so that every node can load them.
    env = {} if store is None else {STORE_VARIABLE: store}
    title = None if options.agent_name else "Dragoman"
    own = AgentSpec(options.agent_name or served_name(None), (*OWN_COMMAND, *arguments), env=env, title=title)
    return _add_installed(own, chosen=None if arguments else PreferenceFile(home()).read().agent)


def _add_installed(own: "AgentSpec", *, chosen: str | None) -> "tuple[AgentSpec, ...]":
    """Return our agent and the installed ones, the chosen one first. An agent starts only when it is used."""
    from dragoman.bridge import AgentSpec

    found = [agent for agent in find_agents(home()) if agent.command and agent.name != own.name]
    specs = [own, *(AgentSpec(agent.name, agent.command, title=agent.title) for agent in found)]
    return tuple(sorted(specs, key=lambda spec: spec.name != chosen))


async def _serve(plan: ServePlan) -> None:
    """Serve until a signal arrives. Raises DragomanError or OSError."""
    from dragoman.bridge import Bridge
    from dragoman.bridge.figures import send_to_telemetry
    from dragoman.telemetry.setup import start_loading, wait_loaded

    return_freed_memory()
    start_loading("dragoman-bridge")
    async with Bridge(plan.settings) as bridge:
        await wait_loaded()
        send_to_telemetry(bridge.measure)
        await _open(bridge, plan)


async def _open(bridge: "Bridge", plan: ServePlan) -> None:
    from dragoman.bridge.front.app import Application
    from dragoman.bridge.front.server import Server
    from dragoman.bridge.guard import Guard, keep_metrics_token, keep_token, make_policy
    from dragoman.cli.serve.address import link_host, listen, local_url, names_for, prefix_of
    from dragoman.cli.serve.notice import ServeNotice

    token = keep_token(plan.settings.home / "bridge")
    keep_metrics_token(plan.settings.home / "bridge", token)
    with listen(plan.address) as listener, ExitStack() as noted:
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
        guard = Guard(policy, bridge.credential_stores(token))
        base_url = plan.public_url or f"http{'s' if plan.tls else ''}://{link_host(plan.address)}:{port}/"
        notice = ServeNotice(f"{base_url.rstrip('/')}/", guard, plan.settings, json=plan.json)
        app = Application(bridge, guard, prefix=prefix_of(plan.public_url))
        limits, stall_s = _server_limits(), plan.settings.viewer_limits.stall_s
        server = Server(app, listener, limits=limits, tls=plan.tls, stall_s=stall_s)
        own_url = local_url(plan.address, port, is_tls=plan.tls is not None)
        async with server:
            _publish_address(noted, plan.settings.home, own_url)
            await notice.begin(token)
            link = await notice.new_link() if plan.open_browser else None
            await _offer_links(notice, link)


def _server_limits() -> "ServerLimits":
    """Return the limits of the server. Half of the file descriptors remain for session logs and agents."""
    from dragoman.bridge.front.limits import ServerLimits
    from dragoman.store import raise_fd_limit

    descriptors, limits = raise_fd_limit(), ServerLimits()
    if descriptors // 2 not in range(limits.max_sockets):  # more than enough, or unlimited
        return limits
    return ServerLimits(max_sockets=descriptors // 2)


def _publish_address(stack: ExitStack, home: Path, url: str) -> None:
    """Save the address, so that commands of this home find the bridge. If that fails, they need its token."""
    from dragoman.running_bridge import publish_address

    with suppress(OSError, SessionBusyError):
        stack.callback(publish_address(home, url).release)


async def _offer_links(notice: "ServeNotice", link: str | None) -> None:
    """Open the browser if a link is passed, and print a new link for each Enter, until a signal arrives."""
    from dragoman.cli.browser import open_browser
    from dragoman.cli.serve.notice import EnterKey

    running: set[asyncio.Task[None]] = set()

    def start(work: Coroutine[Any, Any, None]) -> None:
        task = tasks.create_task(work)
        running.add(task)
        task.add_done_callback(running.discard)

    async with asyncio.TaskGroup() as tasks:
        if link is not None:
            start(open_browser(link))
        enter_key = EnterKey(lambda: start(notice.fresh_link()))
        enter_key.watch()
        await _until_stopped(notice)
        enter_key.ignore()
        for task in running:
            task.cancel()


async def _until_stopped(notice: "ServeNotice") -> None:
    """Wait for a signal. The first one stops in order. A second Ctrl-C exits at once."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop(number: int) -> None:
        if stopped.is_set() and number == signal.SIGINT:
            os._exit(128 + number)  # the agents' monitor processes end the agents
        if not stopped.is_set():
            stopped.set()
            notice.stopping()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    await stopped.wait()


# glibc raises its mmap threshold with each large block that is freed. After a message of 15 MB, blocks of that size
# come from the heap, which shrinks only at its end. One small block there can hold hundreds of unused megabytes. With a
# fixed threshold, each large block has its own mapping, which is returned when it is freed.
_LARGE_BYTES = 1024 * 1024
"""Blocks of this size get their own mapping. Runs of updates are much smaller and are not slowed down."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def return_freed_memory() -> None:
    """Return large blocks to the system as soon as they are freed. Allocators other than glibc's do so anyway."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * _LARGE_BYTES)
