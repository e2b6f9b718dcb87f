"""`dragoman chat`: chat with an agent in the terminal."""

import argparse
import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from dragoman.cli.agent_choice import (
    ChosenAgent,
    check_own_agent,
    choose_agent,
    choose_directory,
    model_to_set,
    prefer_agent,
)
from dragoman.cli.chat.background import AgentThread, SessionOpener
from dragoman.cli.chat.local import AgentSwitchedError
from dragoman.cli.exit_codes import USAGE
from dragoman.cli.failure import exit_code_of, explain
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error, start_log
from dragoman.cli.session_options import choose
from dragoman.client import Session
from dragoman.errors import DragomanError

HISTORY = "chat-history"


def main(options: argparse.Namespace) -> int:
    """Chat until the user leaves or stdin ends."""
    agent = prefer_agent(options, choose_agent(options))
    if options.agent and not agent.is_own:
        raise UsageError("--agent is for dragoman's own agent; leave it out, or leave out -- CMD")
    cwd = choose_directory(options.cwd)
    start_log("CRITICAL")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack a character
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, _stop)
    if agent.is_own:
        try:
            check_own_agent(options.model, options.agent)
        except DragomanError as error:
            print_error("chat", error)
            return USAGE
    try:
        if _is_interactive() and agent.is_own:
            from dragoman.cli.model_choice import choose_at_start

            agent = choose_at_start(options, agent, cwd, input, print)
        return _chat(options, agent, cwd)
    except DragomanError as error:
        print_error("chat", explain(error, is_own=agent.is_own))
        return exit_code_of(error, is_own=agent.is_own)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _chat(options: argparse.Namespace, agent: ChosenAgent, cwd: Path) -> int:
    """Chat with the agent, and then with each agent that the user switches to."""
    while True:
        try:
            _talk_with(agent, options, cwd)
        except AgentSwitchedError as switched:
            agent = ChosenAgent(switched.command)
            options.model = options.session = None
            options.is_continued = False
        else:
            return 0


def _talk_with(agent: ChosenAgent, options: argparse.Namespace, cwd: Path) -> None:
    is_interactive = _is_interactive()
    with AgentThread(agent, is_interactive=is_interactive) as background:
        opener = SessionOpener(background, cwd, [Path(name).absolute() for name in options.mcp])
        session = _open(opener, options)
        model = model_to_set(options)
        if model is not None:
            background.call(choose(session, "model", model))
        if is_interactive:
            _talk(background, opener, session)
        else:
            from dragoman.cli.chat.piped import PipedChat

            PipedChat(background, session).run(sys.stdin)


def _talk(background: AgentThread, opener: SessionOpener, session: Session) -> None:
    from dragoman.cli.chat.conversation import ChatConversation
    from dragoman.cli.terminal.screen import Screen, has_colours
    from dragoman.home import home

    colour = has_colours(sys.stdout)
    screen = Screen(sys.stdout, colour=colour)
    conversation = ChatConversation(background, opener, screen, home() / HISTORY, colour=colour)
    conversation.enter(session)
    conversation.run()


def _open(opener: SessionOpener, options: argparse.Namespace) -> Session:
    if options.session:
        return opener.reopen(options.session)
    return opener.newest() if options.is_continued else opener.new()


def _stop(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
