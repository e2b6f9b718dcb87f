"""The agent that a command uses: `-- CMD ARGS…`, an agent's name, `--url URL`, or dragoman's own."""

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.cli.options import TOKEN_VARIABLE, UsageError
from dragoman.errors import DragomanError
from dragoman.home import home
from dragoman.text import one_line
from dragoman.text.match import closest

if TYPE_CHECKING:
    from dragoman.bridge import AgentSpec
    from dragoman.client import AgentConnection, ElicitationHandler
    from dragoman.client.connection.handshake import WireObserver
    from dragoman.client.policies import Policy

OWN_COMMAND = (sys.executable, "-m", "dragoman", "agent")

OWN_NAME = "dragoman"

_NOT_IN_NAME = re.compile(r"[^a-z0-9._-]+")

MAX_TOKEN_BYTES = 4096
"""A longer file cannot be a token."""


class AgentAddress:
    """The address and the token of a running agent."""

    def __init__(self, url: str, token: str | None) -> None:
        from dragoman.protocol.address import Address

        self.shown = Address.parse(url, token=token).shown
        self.url = url
        self.token = token

    def connect(
        self,
        *,
        policy: "Policy | None",
        elicit: "ElicitationHandler | None" = None,
        watch: "WireObserver | None" = None,
        start_timeout_s: float | None = None,
        newest: Literal[1, 2] = 2,
    ) -> "AbstractAsyncContextManager[AgentConnection]":
        """Connect to the agent."""
        from dragoman.client import connect_url
        from dragoman.client.connection.handshake import START_TIMEOUT_S

        return connect_url(
            self.url,
            token=self.token,
            policy=policy,
            elicit=elicit,
            watch=watch,
            start_timeout_s=start_timeout_s or START_TIMEOUT_S,
            protocol_version=newest,
        )


class ChosenAgent(msgspec.Struct, frozen=True):
    """An agent to start, or one that is already running."""

    command: list[str]
    """Empty if the agent is already running."""
    address: AgentAddress | None = None
    is_own: bool = False
    """Whether this command starts dragoman's own agent."""

    @property
    def newest(self) -> Literal[1, 2]:
        """The ACP version to ask for.

        Our own agent and client use version 1, because version 2 would be translated twice.
        """
        return 1 if self.is_own else 2


class AgentCommandError(DragomanError):
    """An agent cannot be started. The message has the reason and the next step."""


def choose_agent(options: argparse.Namespace) -> ChosenAgent:
    """Return the agent that the command line names, with the options for our own agent.

    Raises UsageError.
    """
    command: list[str] | None = options.command
    address = choose_address(options)
    check_sandbox(options)
    if address is not None:
        if has_place(options):
            raise UsageError("--url connects to a running agent and --run-in starts one; use only one of them")
        return ChosenAgent([], address)
    if has_place(options):
        return ChosenAgent(choose_command_in_place(options))
    if command is None:
        return ChosenAgent([*OWN_COMMAND, *own_arguments(options)], is_own=True)
    return ChosenAgent(choose_command(command))


def check_sandbox(options: argparse.Namespace) -> None:
    """Check that `--sandbox` is used for our own agent. Raises UsageError."""
    others = (options.command, getattr(options, "url", None), getattr(options, "agents_file", None))
    if getattr(options, "sandbox", None) and (any(others) or has_place(options)):
        raise UsageError(
            "--sandbox is for the commands of dragoman's own agent; put another agent into a sandbox with "
            "--run-in sandbox"
        )


def model_to_set(options: argparse.Namespace) -> str | None:
    """Return the model to set in the session, or None. Our own agent is started with its model."""
    model: str | None = options.model
    return None if options.command is None and options.url is None else model


def has_place(options: argparse.Namespace) -> bool:
    """Return whether `--run-in` names a place for the agent.

    Raises UsageError for options that need `--run-in`.
    """
    if getattr(options, "place", None) is not None:
        return True
    if any(getattr(options, name, None) for name in ("map", "pass_env", "writable")):
        raise UsageError("--map, --pass-env and --writable are for --run-in; leave them out, or add --run-in")
    return False


def choose_command_in_place(options: argparse.Namespace) -> list[str]:
    """Return the command that runs an agent in the place that `--run-in` names.

    A container without `--map` gets the session's directory at the same path, and a sandbox always. Raises UsageError.
    """
    from dragoman.runner import InvalidPlaceError, read_place

    if getattr(options, "agents_file", None) or options.agent:
        raise UsageError(
            "--run-in is for one agent; leave out --agents-file and --agent, and put its options after its command"
        )
    command = options.command or ["dragoman", "agent", *own_arguments(options)]
    if options.place == "sandbox" and options.command is None:
        raise UsageError("dragoman's own agent runs its commands in a sandbox itself; use --sandbox workspace")
    try:
        place = read_place(options.place, options.map, options.pass_env, options.writable)
        if place.kind == "sandbox":
            place = place.with_writable(str(choose_directory(options.cwd).resolve()))
        if place.kind == "docker" and not place.paths:
            directory = str(choose_directory(options.cwd))
            place = place.with_paths((directory, directory))
    except InvalidPlaceError as problem:
        raise UsageError(str(problem)) from None
    missing = [name for name in place.variables if name not in os.environ]
    if missing:
        raise UsageError(f"--pass-env: {missing[0]} is not set; set it or leave it out")
    return place.local_command(command)


def prefer_agent(options: argparse.Namespace, agent: ChosenAgent) -> ChosenAgent:
    """Return the user's preferred agent if the command line does not choose one. Raises UsageError."""
    if not agent.is_own or options.model or options.agent or options.sandbox:
        return agent
    from dragoman.assistant.preferences import PreferenceFile, PreferencesFileError
    from dragoman.catalog.installed import find_agents

    try:
        chosen = PreferenceFile(home()).read().agent
    except PreferencesFileError as error:
        raise UsageError(str(error)) from None
    if chosen is None:
        return agent
    found = [each for each in find_agents(home()) if each.name == chosen and each.command]
    return ChosenAgent(list(found[0].command)) if found else agent


def choose_command(words: Sequence[str]) -> list[str]:
    """Return the command of an agent.

    A single word can be a command, the name of an agent, or a quoted command line. An agent installed with `dragoman
    agents install` wins over a command of the same name. The variables of the agent's entry are added to our
    environment, which the agent inherits. Raises UsageError if a known agent is not installed or cannot be started, if
    a quoted command cannot be split, or if the word looks like a misspelt agent name.
    """
    if not "".join(words[:1]):
        raise UsageError("there is no command after --; name an agent, or leave out -- to use dragoman's own")
    from dragoman.catalog.installed import AgentEnvironments

    is_installed = len(words) == 1 and AgentEnvironments(home()).has(words[0])
    if len(words) > 1 or (shutil.which(words[0]) is not None and not is_installed):
        return _check_program(words)
    return _find_by_name(words[0])


def served_name(command: Sequence[str] | None) -> str:
    """Return the name under which a bridge serves an agent: the lowercase first word of its command."""
    if command is None:
        return OWN_NAME
    return _NOT_IN_NAME.sub("-", Path(command[0]).stem.lower()).strip("-.") or "agent"


def choose_address(options: argparse.Namespace) -> AgentAddress | None:
    """Return the running agent's address if `--url` is used. Raises UsageError."""
    if options.url is None:
        if options.token_file is not None:
            raise UsageError("--token-file needs --url; add --url or leave it out")
        return None
    if options.command is not None:
        raise UsageError("--url connects to a running agent and -- CMD starts one; use only one of them")
    from dragoman.protocol.address import InvalidAddressError

    url, token = options.url, os.environ.get(TOKEN_VARIABLE) or None
    if options.token_file is not None:
        token = read_token(Path(options.token_file))
    if token is None:
        url, token = add_own_token(url)
    try:
        return AgentAddress(url, token)
    except InvalidAddressError as error:
        raise UsageError(str(error)) from None


def add_own_token(url: str) -> tuple[str, str | None]:
    """Return the URL with the token of our home if the running bridge of this home listens there."""
    from dragoman.running_bridge import find_bridge

    bridge = find_bridge(home())
    matched = None if bridge is None else bridge.match(url)
    return (url, None) if bridge is None or matched is None else (matched, bridge.read_token())


def own_arguments(options: argparse.Namespace) -> list[str]:
    """Return the command-line options for our own agent."""
    model, agent_file = getattr(options, "model", None), getattr(options, "agent", None)
    sandbox = getattr(options, "sandbox", None)
    values = {"--model": model, "--agent": agent_file and str(Path(agent_file).absolute()), "--sandbox": sandbox}
    return [word for name, value in values.items() if value for word in (name, value)]


def choose_directory(directory: str) -> Path:
    """Return the directory that `--cwd` names. Raises UsageError."""
    path = Path(directory).absolute()
    if not path.is_dir():
        raise UsageError(f"--cwd: {path} is not a directory; use an existing directory")
    return path


def check_own_agent(model: str | None, agent_file: str | None) -> None:
    """Check that our own agent could start a session with these options.

    Raises UnknownModelError, ScriptError, ModelError, ProfileError or MissingVariableError.
    """
    named = [name for name in (model, os.environ.get("DRAGOMAN_MODEL")) if name]
    if not named and agent_file is None:
        return
    from dragoman.assistant.models import find_model

    for name in named:
        find_model(name)
    if agent_file is not None:
        from dragoman.assistant.profile.choice import find_explicit

        settings = find_explicit(Path(agent_file)).profile.model
        if settings is not None and model is None:
            find_model(settings.name, settings)


def check_commands(specs: "Iterable[AgentSpec]") -> None:
    """Check that each agent has a command that can be started. Raises AgentCommandError."""
    for spec in specs:
        if spec.cwd is not None and not Path(spec.cwd).is_dir():
            raise AgentCommandError(
                f"agent {spec.name}: its cwd {spec.cwd} is not a directory; create it or use another"
            )
        problem = _explain_command(spec)
        if problem is not None:
            raise AgentCommandError(f"agent {spec.name}: {problem}")


def _find_by_name(name: str) -> list[str]:
    from dragoman.catalog.known import known_agents
    from dragoman.client.connect import split_words

    try:
        known = known_agents(home())
        agent = known.get(name)
        if agent is not None:
            os.environ.update(agent.env)
            return agent.require_command()
        words = list(split_words(name))
    except DragomanError as error:
        raise UsageError(str(error)) from None
    near = closest(name, known) if len(words) == 1 else None
    if near is not None:
        raise UsageError(f"there is no command and no agent {name!r}; did you mean {one_line(near)}?")
    return _check_program(words)


def _check_program(words: Sequence[str]) -> list[str]:
    """Return the command. Raises UsageError if it belongs to a known agent that is not installed."""
    if shutil.which(words[0]) is None and (step := _install_hint(words[0])) is not None:
        raise UsageError(f"there is no command {words[0]} on PATH; {step}")
    return list(words)


def _install_hint(program: str) -> str | None:
    from dragoman.catalog.on_path import how_to_get

    return how_to_get(program)


def read_token(path: Path) -> str:
    """Return the token in a file. Raises UsageError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_TOKEN_BYTES + 1)
    except OSError as error:
        problem = f"the token file {path} cannot be read: {error.strerror}"
        raise UsageError(f"{problem}; `dragoman serve` prints the path of its token") from None
    token = text.decode(errors="replace").strip()
    if len(text) > MAX_TOKEN_BYTES or not token or not (token.isascii() and token.isprintable()):
        raise UsageError(f"the file {path} does not contain a token; expected one line of ASCII characters")
    return token


def _explain_command(spec: "AgentSpec") -> str | None:
    """Return the reason why an agent's command cannot be started, or None."""
    command = spec.command[0]
    if not os.path.dirname(command):  # noqa: PTH120 -- a bare command is not a path
        if shutil.which(command, path=spec.env.get("PATH")) is not None:
            return None
        step = _install_hint(command) or "use its full path, or install it and check that it is on PATH"
        return f"there is no command {command}; {step}"
    path = Path(spec.cwd or ".") / command
    if not path.is_file():
        return f"there is no command {path}; check that its path is right"
    if not os.access(path, os.X_OK):
        return f"{path} is not executable; run chmod +x on it, or name the program that runs it"
    return None
