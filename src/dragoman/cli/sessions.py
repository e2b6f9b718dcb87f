"""`dragoman sessions`: the sessions that an agent keeps, whichever agent it is."""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from dragoman.cli.agent_url import Elsewhere, add_url_options, read_url
from dragoman.cli.command import split_command
from dragoman.cli.conversation import Conversation, Message, read_conversation
from dragoman.cli.exit_code import FAILED, exit_code_of
from dragoman.cli.explanation import explain
from dragoman.cli.loop import Stopped, run
from dragoman.cli.output import complain, print_json, start_log
from dragoman.cli.sessions_find import Found, find_session
from dragoman.client import RemoteAgent, Session, ToolCallState, connect
from dragoman.client.problem import Refused
from dragoman.errors import DragomanError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.methods import SESSION_DELETE
from dragoman.text import escape_json, one_line

ACTIONS = {
    "list": "show the sessions that the agent has (the default)",
    "show": "print a session's conversation",
    "load": "see that a session can be opened, and what is in it",
    "fork": "make a copy of a session, and print its id",
    "delete": "let the agent forget a session for good",
    "export": "write a session's conversation, as --format says",
}


class NotWritten(DragomanError):
    """The file that was named cannot be written."""


class NobodyToAsk(Refused):
    """There is no terminal at which somebody could agree."""


def main(argv: Sequence[str]) -> int:
    """Do what was asked; 1 when that cannot be done, 2 for a wrong command line."""
    own, command = split_command(argv)
    parser = _parser()
    options = parser.parse_intermixed_args(own)
    _check(parser, options, command)
    elsewhere = read_url(options, parser, has_command="--" in argv)
    start_log("ERROR")
    try:
        code = run(_run(options, command if elsewhere is None else elsewhere))
        sys.stdout.flush()
    except DragomanError as error:
        is_own = elsewhere is None and "--" not in argv
        complain("sessions", f"{explain(error, is_own=is_own)}{_hint(error, options)}")
        return exit_code_of(error, is_own=is_own)
    except Stopped as stopped:
        return 128 + stopped.signal_number
    except BrokenPipeError:  # whoever read it has seen enough, and Python would complain at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


async def _run(options: argparse.Namespace, agent_at: Sequence[str] | Elsewhere) -> int:
    async with agent_at.connect(policy=None) if isinstance(agent_at, Elsewhere) else connect(agent_at) as agent:
        if options.action == "list":
            return await _list(agent, options)
        found = await find_session(agent, options.id, options.cwd)
        return await _DEEDS[options.action](agent, found, options)


async def _list(agent: RemoteAgent, options: argparse.Namespace) -> int:
    infos = [info async for info in agent.list_sessions(options.cwd)]
    if options.json:
        print_json(encode(infos))
    elif infos:
        from dragoman.cli.sessions_table import table_lines

        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in table_lines(infos, width=width, long=options.long):
            print(line)
    else:
        where = f" in {options.cwd}" if options.cwd else ""
        print(f"{one_line(agent.name)} has no sessions{where}.", file=sys.stderr)
    return 0


async def _show(agent: RemoteAgent, found: Found, options: argparse.Namespace) -> int:
    conversation = await _read(agent, found)
    print(_written(conversation, "json" if options.json else "markdown"), end="")
    return 0


async def _load(agent: RemoteAgent, found: Found, options: argparse.Namespace) -> int:
    session = await _open(agent, found)
    conversation = read_conversation(session, agent.name, found.info)
    summary = {
        "sessionId": session.id,
        "title": conversation.title,
        "cwd": session.cwd,
        "messages": sum(isinstance(entry, Message) for entry in conversation.entries),
        "toolCalls": sum(isinstance(entry, ToolCallState) for entry in conversation.entries),
        "mode": session.modes.current_mode_id if session.modes else None,
        "updatedAt": conversation.updated_at,
    }
    if options.json:
        print_json(encode(summary))
        return 0
    for name, value in summary.items():
        if value is not None:
            print(f"{name}: {one_line(str(value))}")
    return 0


async def _fork(agent: RemoteAgent, found: Found, options: argparse.Namespace) -> int:
    copy = await agent.fork(found.session_id, found.cwd, additional_directories=_others(agent, found))
    if options.json:
        print_json(encode({"sessionId": copy.id, "forkedFrom": found.session_id}))
    else:
        print(one_line(copy.id))
    return 0


async def _delete(agent: RemoteAgent, found: Found, options: argparse.Namespace) -> int:
    agent.check.method(SESSION_DELETE)
    title = found.info.title if found.info else None
    name = one_line(f"{title} ({found.session_id})" if title else found.session_id)
    if not options.yes and not await _agrees(f"Delete {name} for good? [y/N] "):
        print("Nothing was deleted.", file=sys.stderr)
        return FAILED
    await agent.delete(found.session_id)
    if options.json:
        print_json(encode({"deleted": found.session_id}))
    else:
        print(f"Deleted {name}." if found.info else f"There is no session {name} any more.")
    return 0


async def _export(agent: RemoteAgent, found: Found, options: argparse.Namespace) -> int:
    kind = options.format or ("json" if options.json else "markdown")
    text = _written(await _read(agent, found), kind)
    if options.out is None or options.out == "-":
        print(text, end="")
        return 0
    _write(options.out, text)
    print(f"Wrote {options.out}.", file=sys.stderr)
    return 0


_DEEDS: dict[str, Callable[[RemoteAgent, Found, argparse.Namespace], Awaitable[int]]] = {
    "show": _show,
    "load": _load,
    "fork": _fork,
    "delete": _delete,
    "export": _export,
}


async def _open(agent: RemoteAgent, found: Found) -> Session:
    return await agent.load_session(found.session_id, found.cwd, additional_directories=_others(agent, found))


def _others(agent: RemoteAgent, found: Found) -> list[str]:
    """Return the other directories of a session, to an agent that takes some."""
    return found.additional_directories if agent.capabilities.session_capabilities.additional_directories else []


async def _read(agent: RemoteAgent, found: Found) -> Conversation:
    return read_conversation(await _open(agent, found), agent.name, found.info)


def _written(conversation: Conversation, kind: str) -> str:
    match kind:
        case "html":
            from dragoman.cli.export_html import to_html

            return to_html(conversation)
        case "json":
            info = v1.SessionInfo(
                session_id=conversation.session_id,
                cwd=conversation.cwd,
                title=conversation.title,
                updated_at=conversation.updated_at,
            )
            content = {"session": info, "agent": conversation.agent, "updates": conversation.updates}
            return escape_json(msgspec.json.format(encode(content), indent=2).decode()) + "\n"
        case _:
            from dragoman.cli.export_markdown import to_markdown

            return to_markdown(conversation)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror}; name another file with --out") from None


async def _agrees(question: str) -> bool:
    """Ask at the terminal, without holding up the loop: a signal still ends it. Raises NobodyToAsk."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise NobodyToAsk("nobody can be asked here whether to delete it; say --yes to delete it without a question")
    print(question, end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()
    loop.add_reader(sys.stdin, answered.set)
    try:
        await answered.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _hint(error: DragomanError, options: argparse.Namespace) -> str:
    """Say how to get at a session that the agent of a bridge has open."""
    data: object = error.data if isinstance(error, RemoteError) else None
    if not isinstance(data, dict) or "pid" not in data or options.url is not None:
        return ""
    return (
        f"; if that is the agent of a dragoman serve, let it do this: "
        f"dragoman sessions {options.action} {options.id} --url http://127.0.0.1:8421/acp"
    )


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace, command: Sequence[str]) -> None:
    if not command:
        parser.error("there is no command after --; name an agent, or leave -- out to use dragoman's own")
    if options.action == "list" and options.id is not None:
        parser.error("list takes no ID; to see one session, say show ID")
    if options.action != "list" and not options.id:
        parser.error(f"which session? say {options.action} ID, with an ID of dragoman sessions list")
    if options.action != "export" and (options.format or options.out):
        parser.error("--format and --out go with export")
    if options.cwd is not None:
        options.cwd = str(Path(options.cwd).absolute())


def _parser() -> argparse.ArgumentParser:
    actions = "\n".join(f"  {name:<7} {text}" for name, text in ACTIONS.items())
    parser = argparse.ArgumentParser(
        prog="dragoman sessions",
        usage="%(prog)s [ACTION] [ID] [OPTIONS] [--url URL | -- CMD ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"The sessions that an agent keeps. ACTION is one of:\n\n{actions}\n\n"
        "ID is a session's id, or as much of its beginning as tells it from the others.\n"
        "CMD is any ACP agent, or the name of one, URL one that runs already; without either, dragoman's own is used.",
        epilog="Exit codes: 0 done, 1 it cannot be done, 2 usage.",
    )
    parser.add_argument("action", metavar="ACTION", nargs="?", choices=list(ACTIONS), default="list", help="see above")
    parser.add_argument("id", metavar="ID", nargs="?", help="which session")
    parser.add_argument(
        "--cwd", metavar="DIR", help="list: only the sessions of this directory; else: where the session is to work"
    )
    parser.add_argument("--json", action="store_true", help="print the result for a program to read")
    parser.add_argument("--long", action="store_true", help="list: whole ids and titles")
    parser.add_argument("--yes", action="store_true", help="delete: do not ask")
    parser.add_argument("--format", choices=["markdown", "json", "html"], help="export: what to write (markdown)")
    parser.add_argument("--out", metavar="FILE", help="export: where to write it (default: stdout)")
    add_url_options(parser)
    return parser
