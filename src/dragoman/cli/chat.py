"""`dragoman chat`: talk with an agent in the terminal."""

import argparse
import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from dragoman.cli.agent_choice import ChosenAgent, check_own_agent, choose_agent, choose_directory
from dragoman.cli.chatting.background import Background
from dragoman.cli.chatting.openings import Openings
from dragoman.cli.chatting.options import choose
from dragoman.cli.exit_code import USAGE, exit_code_of
from dragoman.cli.explanation import explain
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain, start_log
from dragoman.client import Session
from dragoman.errors import DragomanError

HISTORY = "chat-history"


def main(options: argparse.Namespace) -> int:
    """Talk until the person leaves, or stdin ends."""
    agent = choose_agent(options)
    if options.agent and not agent.is_own:
        raise UsageError("--agent is for dragoman's own agent; leave it out, or leave out -- CMD")
    cwd = choose_directory(options.cwd)
    start_log("CRITICAL")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character is no reason to end
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, _stop)
    if agent.is_own:
        try:
            check_own_agent(options.model, options.agent)
        except DragomanError as error:
            complain("chat", error)
            return USAGE
    try:
        return _chat(options, agent, cwd)
    except DragomanError as error:
        complain("chat", explain(error, is_own=agent.is_own))
        return exit_code_of(error, is_own=agent.is_own)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _chat(options: argparse.Namespace, agent: ChosenAgent, cwd: Path) -> int:
    has_person = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    with Background(agent, has_person=has_person) as background:
        openings = Openings(background, cwd, [Path(name).absolute() for name in options.mcp])
        session = _open(openings, options)
        if options.model and not agent.is_own:
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


def _stop(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)
