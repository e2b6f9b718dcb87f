"""`dragoman serve`: put an agent behind one address, for browsers and for ACP clients."""

import argparse
import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.assistant.preferences import PreferenceFile
from dragoman.cli.agent_choice import (
    OWN_COMMAND,
    check_commands,
    check_own_agent,
    choose_command,
    choose_command_there,
    choose_directory,
    has_place,
    own_arguments,
    served_name,
)
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain, start_log
from dragoman.client.agent_environments import find_agents
from dragoman.errors import DragomanError, SessionBusy
from dragoman.event_loop import Stopped, run
from dragoman.files.private_file import next_step
from dragoman.home import home

if TYPE_CHECKING:
    from dragoman.bridge import AgentSpec, Bridge, Settings
    from dragoman.bridge.front.server import Tls
    from dragoman.cli.serve.address import ListenAddress
    from dragoman.cli.serve.notice import ServeNotice


class ServePlan(msgspec.Struct, frozen=True):
    """The agents to serve, and the address."""

    settings: "Settings"
    address: "ListenAddress"
    tls: "Tls | None"
    allow_hosts: list[str]
    allow_origins: list[str]
    public_url: str | None
    json: bool
    open_browser: bool


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
    from dragoman.cli.browser import is_at_terminal, is_wanted
    from dragoman.cli.serve.address import check_exposure, check_tls, resolve
    from dragoman.store import find_address, read_lease

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
    store = find_address(options.store)
    agents = _agents(options, store)
    check_commands(agents)
    if not options.agents and options.command is None and options.place is None:
        check_own_agent(options.model, options.agent)
    settings = Settings(
        agents=agents,
        home=home(),
        cwd=_choose_cwd(options),
        store=store,
        lease_s=None if store is None else read_lease(),
        agent_limits=AgentLimits(**{name: value for name, value in times.items() if value is not None}),
    )
    is_json = options.format == "json"
    is_person = not is_json and options.public_url is None and is_at_terminal()
    opens = is_wanted(options.open, os.environ, is_terminal=is_person)
    return ServePlan(settings, address, tls, json=is_json, open_browser=opens, **lists)


def _choose_cwd(options: argparse.Namespace) -> str:
    """Return the directory that the page proposes: on another machine, without a mapping, a path of that machine."""
    if not (options.place or "").startswith("ssh:") or options.map:
        return str(choose_directory(options.cwd).resolve())
    if not options.cwd.startswith("/"):
        problem = f"where do sessions begin on {options.place.removeprefix('ssh:')}?"
        raise UsageError(f"{problem} say --cwd with an absolute path there, or --map LOCAL=REMOTE")
    return str(options.cwd)


def _agents(options: argparse.Namespace, store: str | None) -> "tuple[AgentSpec, ...]":
    from dragoman.bridge import AgentSpec, read_agents_file
    from dragoman.store import STORE_VARIABLE

    if options.agents:
        return read_agents_file(Path(options.agents).absolute())
    if has_place(options):
        return (AgentSpec(options.name or served_name(options.command), tuple(choose_command_there(options))),)
    if options.command is not None:
        command = tuple(choose_command(options.command))
        return (AgentSpec(options.name or served_name(options.command), command),)
    arguments = own_arguments(options)
    # Our own agent has its sessions where the bridge has its journals, so that every node can load them.
    env = {} if store is None else {STORE_VARIABLE: store}
    title = None if options.name else "Dragoman"
    own = AgentSpec(options.name or served_name(None), (*OWN_COMMAND, *arguments), env=env, title=title)
    return _add_installed(own, chosen=None if arguments else PreferenceFile(home()).read().agent)


def _add_installed(own: "AgentSpec", *, chosen: str | None) -> "tuple[AgentSpec, ...]":
    """Offer the installed agents beside ours, the chosen one first; none is started before it is used."""
    from dragoman.bridge import AgentSpec

    found = [agent for agent in find_agents(home()) if agent.command and agent.name != own.name]
    specs = [own, *(AgentSpec(agent.name, agent.command, title=agent.title) for agent in found)]
    return tuple(sorted(specs, key=lambda spec: spec.name != chosen))


async def _serve(plan: ServePlan) -> None:
    """Serve until a signal comes; raises DragomanError and OSError."""
    from dragoman.bridge import Bridge
    from dragoman.bridge.figures import send_to_telemetry
    from dragoman.store import raise_fd_limit
    from dragoman.telemetry.setup import begin_start, start

    raise_fd_limit()
    begin_start("dragoman-bridge")
    async with Bridge(plan.settings) as bridge:
        await start()
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
        server = Server(app, listener, tls=plan.tls, stall_s=plan.settings.viewer_limits.stall_s)
        own_url = local_url(plan.address, port, is_tls=plan.tls is not None)
        async with server:
            _note_address(noted, plan.settings.home, own_url)
            await notice.begin(token)
            link = await notice.new_link() if plan.open_browser else None
            await _give_links(notice, link)


def _note_address(stack: ExitStack, home: Path, url: str) -> None:
    """Let commands of this home find the bridge; where that cannot be, they have to be given its token."""
    from dragoman.protocol.running_bridge import note_address

    with suppress(OSError, SessionBusy):
        stack.callback(note_address(home, url).release)


async def _give_links(notice: "ServeNotice", link: str | None) -> None:
    """Open the browser with a link, if there is one, and print a fresh one for each Enter, until a signal comes."""
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
