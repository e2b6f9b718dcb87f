"""The agent that a command talks to: `-- CMD ARGS…`, the name of one, `--url URL`, or dragoman's own."""

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
    from dragoman.client import Elicit, Policy, RemoteAgent
    from dragoman.client.handshake import TrafficWatch

OWN_COMMAND = (sys.executable, "-m", "dragoman", "agent")

OWN_NAME = "dragoman"

_NO_NAME = re.compile(r"[^a-z0-9._-]+")

MAX_TOKEN_BYTES = 4096
"""A file that is longer is no token."""


class AgentAddress:
    """The address of an agent that runs already, and its token."""

    def __init__(self, url: str, token: str | None) -> None:
        from dragoman.protocol.address import Address

        self.shown = Address.parse(url, token=token).shown
        self.url = url
        self.token = token

    def connect(
        self,
        *,
        policy: "Policy | None",
        elicit: "Elicit | None" = None,
        watch: "TrafficWatch | None" = None,
        start_timeout_s: float | None = None,
        newest: Literal[1, 2] = 2,
    ) -> "AbstractAsyncContextManager[RemoteAgent]":
        """Connect to it."""
        from dragoman.client import connect_url
        from dragoman.client.handshake import START_TIMEOUT_S

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
    """An agent that is to be started, or one that runs already."""

    command: list[str]
    """Empty for one that runs already."""
    address: AgentAddress | None = None
    is_own: bool = False
    """Whether it is dragoman's own, started for this command."""

    @property
    def newest(self) -> Literal[1, 2]:
        """The version of ACP to ask for: between our own agent and client, 2 would be a translation there and back."""
        return 1 if self.is_own else 2


class NoCommand(DragomanError):
    """An agent cannot be started; the message has the reason and the next step."""


def choose_agent(options: argparse.Namespace) -> ChosenAgent:
    """Return the agent that the command line names, with the options of our own agent; raises UsageError."""
    command: list[str] | None = options.command
    address = choose_address(options)
    if address is not None:
        if has_place(options):
            raise UsageError(
                "--url is an agent that runs already, and --in a place to start one; leave one of them out"
            )
        return ChosenAgent([], address)
    if has_place(options):
        return ChosenAgent(choose_command_there(options))
    if command is None:
        return ChosenAgent([*OWN_COMMAND, *own_arguments(options)], is_own=True)
    return ChosenAgent(choose_command(command))


def has_place(options: argparse.Namespace) -> bool:
    """Tell whether the agent is to run elsewhere; raises UsageError for options of a place that is not named."""
    if getattr(options, "place", None) is not None:
        return True
    if getattr(options, "map", None) or getattr(options, "env", None):
        raise UsageError("--map and --env are for --in; leave them out, or say where the agent is to run")
    return False


def choose_command_there(options: argparse.Namespace) -> list[str]:
    """Return the command that runs an agent in the place that `--in` names; raises UsageError.

    A container without `--map` gets the directory of the session, under the same name.
    """
    from dragoman.runner import BadPlace, read_place

    if getattr(options, "agents", None) or options.agent:
        raise UsageError(
            "--in is for one agent; leave out --agents and --agent, and give its options after its command"
        )
    command = options.command or ["dragoman", "agent", *own_arguments(options)]
    try:
        place = read_place(options.place, options.map, options.env)
    except BadPlace as problem:
        raise UsageError(str(problem)) from None
    missing = [name for name in place.variables if name not in os.environ]
    if missing:
        raise UsageError(f"--env: {missing[0]} is not set here; set it, or leave it out")
    if place.kind == "docker" and not place.paths:
        directory = str(choose_directory(options.cwd))
        place = place.with_paths((directory, directory))
    return place.local_command(command)


def prefer_agent(options: argparse.Namespace, agent: ChosenAgent) -> ChosenAgent:
    """Return the agent that the person chose before, where the command line leaves that open; raises UsageError."""
    if not agent.is_own or options.model or options.agent:
        return agent
    from dragoman.assistant.preferences import PreferenceFile, PreferencesUnusable
    from dragoman.client.agent_environments import find_agents

    try:
        chosen = PreferenceFile(home()).read().agent
    except PreferencesUnusable as error:
        raise UsageError(str(error)) from None
    if chosen is None:
        return agent
    found = [each for each in find_agents(home()) if each.name == chosen and each.command]
    return ChosenAgent(list(found[0].command)) if found else agent


def choose_command(words: Sequence[str]) -> list[str]:
    """Return the command of an agent.

    A single word that is no command may be the name of an agent, or a whole command in quotes; the name of an agent
    that `dragoman agents install` installed counts before a command. The environment of the agent's entry goes into
    ours, which the agent inherits. Raises UsageError when the agent is known and cannot be started or is not installed,
    the quoted command cannot be split, or the word is almost the name of an agent.
    """
    if not "".join(words[:1]):
        raise UsageError("there is no command after --; name an agent, or leave -- out to use dragoman's own")
    from dragoman.client.agent_environments import AgentEnvironments

    is_installed = len(words) == 1 and AgentEnvironments(home()).has(words[0])
    if len(words) > 1 or (shutil.which(words[0]) is not None and not is_installed):
        return _check_program(words)
    return _find_by_name(words[0])


def served_name(command: Sequence[str] | None) -> str:
    """Return the name by which a bridge serves an agent: the first word of its command, in small letters."""
    if command is None:
        return OWN_NAME
    return _NO_NAME.sub("-", Path(command[0]).stem.lower()).strip("-.") or "agent"


def choose_address(options: argparse.Namespace) -> AgentAddress | None:
    """Return where the agent runs already, if `--url` says so; raises UsageError."""
    if options.url is None:
        if options.token_file is not None:
            raise UsageError("--token-file is for --url; leave it out, or say where the agent is")
        return None
    if options.command is not None:
        raise UsageError("--url is an agent that runs already, and -- CMD one to be started; leave one of them out")
    from dragoman.protocol.address import BadAddress

    url, token = options.url, os.environ.get(TOKEN_VARIABLE) or None
    if options.token_file is not None:
        token = read_token(Path(options.token_file))
    if token is None:
        url, token = add_own_token(url)
    try:
        return AgentAddress(url, token)
    except BadAddress as error:
        raise UsageError(str(error)) from None


def add_own_token(url: str) -> tuple[str, str | None]:
    """Return a URL with the token of our home, if the bridge that runs with this home listens there."""
    from dragoman.protocol.running_bridge import find_bridge

    bridge = find_bridge(home())
    matched = None if bridge is None else bridge.match(url)
    return (url, None) if bridge is None or matched is None else (matched, bridge.read_token())


def own_arguments(options: argparse.Namespace) -> list[str]:
    """Return the options of our own agent, for its command."""
    model, agent_file = getattr(options, "model", None), getattr(options, "agent", None)
    given = {"--model": model, "--agent": agent_file and str(Path(agent_file).absolute())}
    return [word for name, value in given.items() if value for word in (name, value)]


def choose_directory(given: str) -> Path:
    """Return the directory that `--cwd` names; raises UsageError."""
    path = Path(given).absolute()
    if not path.is_dir():
        raise UsageError(f"--cwd: {path} is no directory; expected the directory that a session is to work in")
    return path


def check_own_agent(model: str | None, agent_file: str | None) -> None:
    """See that our own agent could begin a session with these options; raises DragomanError.

    That is: UnknownModel, ScriptError, ModelFailure, ProfileError and MissingVariable.
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
    """See that each agent has a command that could be started; raises NoCommand."""
    for spec in specs:
        if spec.cwd is not None and not Path(spec.cwd).is_dir():
            raise NoCommand(f"agent {spec.name}: its cwd {spec.cwd} is no directory; make it, or name another")
        problem = _explain_command(spec)
        if problem is not None:
            raise NoCommand(f"agent {spec.name}: {problem}")


def _find_by_name(name: str) -> list[str]:
    from dragoman.cli.agents.known import known_agents
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
    """Return a command, unless it is that of a known agent that is not installed; raises UsageError."""
    if shutil.which(words[0]) is None and (step := _how_to_get(words[0])) is not None:
        raise UsageError(f"there is no command {words[0]} on PATH; {step}")
    return list(words)


def _how_to_get(program: str) -> str | None:
    from dragoman.client.installed_agents import how_to_get

    return how_to_get(program)


def read_token(path: Path) -> str:
    """Return the token that a file has; raises UsageError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_TOKEN_BYTES + 1)
    except OSError as error:
        problem = f"the token file {path} cannot be read: {error.strerror}"
        raise UsageError(f"{problem}; `dragoman serve` prints where its token is") from None
    token = text.decode(errors="replace").strip()
    if len(text) > MAX_TOKEN_BYTES or not token or not (token.isascii() and token.isprintable()):
        raise UsageError(f"the file {path} has no token in it; expected one line of ASCII characters")
    return token


def _explain_command(spec: "AgentSpec") -> str | None:
    """Return why the command of an agent cannot be started, or None."""
    command = spec.command[0]
    if not os.path.dirname(command):  # noqa: PTH120 -- a bare command is no path
        if shutil.which(command, path=spec.env.get("PATH")) is not None:
            return None
        step = _how_to_get(command) or "give its full path, or install it and see that it is on PATH"
        return f"there is no command {command}; {step}"
    path = Path(spec.cwd or ".") / command
    if not path.is_file():
        return f"there is no command {path}; see that its path is right"
    if not os.access(path, os.X_OK):
        return f"{path} may not be executed; make it executable with chmod +x, or name the program that runs it"
    return None
