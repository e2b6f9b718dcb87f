"""`dragoman chat`: talk with an agent in the terminal."""

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from dragoman.cli.agent_checks import check_own_agent
from dragoman.cli.agent_url import Elsewhere, add_url_options, read_url
from dragoman.cli.chatting.background import Background
from dragoman.cli.chatting.openings import Openings
from dragoman.cli.chatting.options import choose
from dragoman.cli.command import split_command
from dragoman.cli.exit_code import USAGE, exit_code_of
from dragoman.cli.explanation import explain
from dragoman.cli.output import complain, start_log
from dragoman.client import Session
from dragoman.errors import DragomanError

HISTORY = "chat-history"


def main(argv: Sequence[str]) -> int:
    """Talk until the person leaves, or stdin ends."""
    own, command = split_command(argv)
    parser = _parser()
    options = parser.parse_args(own)
    if not command:
        parser.error("there is no command after --; name an agent, or leave -- out to use dragoman's own")
    elsewhere = read_url(options, parser, has_command="--" in argv)
    is_own = elsewhere is None and "--" not in argv
    if options.agent and not is_own:
        parser.error("--agent is for dragoman's own agent; leave it out, or leave out -- CMD")
    cwd = Path(options.cwd).absolute()
    if not cwd.is_dir():
        parser.error(f"--cwd: {cwd} is no directory")
    start_log("CRITICAL")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character is no reason to end
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, _stop)
    if is_own:
        command += _own_options(options)
        try:
            check_own_agent(options.model, Path(options.agent) if options.agent else None)
        except DragomanError as error:
            complain("chat", error)
            return USAGE
    try:
        return _chat(options, elsewhere or command, cwd, is_own=is_own)
    except DragomanError as error:
        complain("chat", explain(error, is_own=is_own))
        return exit_code_of(error, is_own=is_own)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _chat(options: argparse.Namespace, agent: list[str] | Elsewhere, cwd: Path, *, is_own: bool) -> int:
    has_person = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    with Background(agent, is_own=is_own, has_person=has_person) as background:
        openings = Openings(background, cwd, Path(options.mcp).absolute() if options.mcp else None)
        session = _open(openings, options)
        if options.model and (isinstance(agent, Elsewhere) or "--model" not in agent):
            background.call(choose(session, "model", options.model))
        if has_person:
            _talk(background, openings, session)
        else:
            from dragoman.cli.chatting.piped import Piped

            Piped(background, session).run(sys.stdin)
    return 0


def _talk(background: Background, openings: Openings, session: Session) -> None:
    from dragoman.cli.chatting.conversation import Conversation, has_colours
    from dragoman.cli.chatting.screen import Screen
    from dragoman.cli.home import home

    screen = Screen(sys.stdout, colour=has_colours())
    conversation = Conversation(background, openings, screen, home() / HISTORY, colour=has_colours())
    conversation.enter(session)
    conversation.run()


def _open(openings: Openings, options: argparse.Namespace) -> Session:
    if options.session:
        return openings.reopen(options.session)
    return openings.newest() if options.is_continued else openings.new()


def _own_options(options: argparse.Namespace) -> list[str]:
    given = {"--model": options.model, "--agent": options.agent and str(Path(options.agent).absolute())}
    return [word for name, value in given.items() if value for word in (name, value)]


def _stop(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman chat",
        usage="%(prog)s [-h] [--cwd D] [--mcp FILE] [--session ID | --continue] [--model NAME] [--agent FILE] "
        "[--url URL [--token-file FILE] | -- CMD ...]",
        description="Talk with an agent in the terminal. CMD is any ACP agent, URL one that runs already; without "
        "either, dragoman's own is used. "
        "When stdin or stdout is no terminal, every line of stdin is a prompt, the answers go to stdout as they are, "
        "and whatever needs permission is denied.",
        epilog="In the conversation, :help shows the commands. What was written is kept in $DRAGOMAN_HOME/chat-history "
        "(~/.dragoman). NO_COLOR=1 leaves out the colours.",
    )
    parser.add_argument("--cwd", metavar="D", default=".", help="the session's directory (default: the current one)")
    parser.add_argument("--mcp", metavar="FILE", help="give the session the MCP servers of this file")
    before = parser.add_mutually_exclusive_group()
    before.add_argument("--session", metavar="ID", help="go on with this session")
    before.add_argument("--continue", dest="is_continued", action="store_true", help="go on with the last session")
    parser.add_argument("--model", metavar="NAME", help="the model to talk with")
    parser.add_argument("--agent", metavar="FILE", help="the agent file, for dragoman's own agent")
    add_url_options(parser)
    return parser
