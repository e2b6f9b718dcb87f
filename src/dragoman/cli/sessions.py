"""`dragoman sessions`: the sessions that an agent keeps, whichever agent it is."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from dragoman.cli.agent_choice import ChosenAgent, choose_agent
from dragoman.cli.conversation import Conversation, Message, read_conversation
from dragoman.cli.exit_code import FAILED, exit_code_of
from dragoman.cli.explanation import explain
from dragoman.cli.loop import Stopped, run
from dragoman.cli.options import UsageError
from dragoman.cli.output import complain, print_json, start_log
from dragoman.cli.sessions_find import Found, find_session
from dragoman.client import RemoteAgent, Session, ToolCallState, connect
from dragoman.client.problem import Refused
from dragoman.errors import DragomanError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.methods import SESSION_DELETE
from dragoman.text import escape_json, one_line


class NotWritten(DragomanError):
    """The file that was named cannot be written."""


class NobodyToAsk(Refused):
    """There is no terminal at which somebody could agree."""


def main(options: argparse.Namespace) -> int:
    """Do what was asked; 1 when that cannot be done, 2 for a wrong command line."""
    _check(options)
    chosen = choose_agent(options)
    start_log("ERROR")
    try:
        return run(_run(options, chosen))
    except DragomanError as error:
        complain("sessions", f"{explain(error, is_own=chosen.is_own)}{_hint(error, options)}")
        return exit_code_of(error, is_own=chosen.is_own)
    except Stopped as stopped:
        return 128 + stopped.signal_number


async def _run(options: argparse.Namespace, chosen: ChosenAgent) -> int:
    async with chosen.address.connect(policy=None) if chosen.address else connect(chosen.command) as agent:
        if options.action == "list":
            return await _list(agent, options)
        found = await find_session(agent, options.id, options.cwd)
        return await _DEEDS[options.action](agent, found, options)


async def _list(agent: RemoteAgent, options: argparse.Namespace) -> int:
    infos = [info async for info in agent.list_sessions(options.cwd)]
    if options.format == "json":
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
    print(_written(conversation, "json" if options.format == "json" else "markdown"), end="")
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
    if options.format == "json":
        print_json(encode(summary))
        return 0
    for name, value in summary.items():
        if value is not None:
            print(f"{name}: {one_line(str(value))}")
    return 0


async def _fork(agent: RemoteAgent, found: Found, options: argparse.Namespace) -> int:
    copy = await agent.fork(found.session_id, found.cwd, additional_directories=_others(agent, found))
    if options.format == "json":
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
    if options.format == "json":
        print_json(encode({"deleted": found.session_id}))
    else:
        print(f"Deleted {name}." if found.info else f"There is no session {name} any more.")
    return 0


async def _export(agent: RemoteAgent, found: Found, options: argparse.Namespace) -> int:
    kind = "markdown" if options.format == "text" else options.format
    text = _written(await _read(agent, found), kind)
    if options.output is None or options.output == "-":
        print(text, end="")
        return 0
    _write(options.output, text)
    print(f"Wrote {options.output}.", file=sys.stderr)
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
        raise NotWritten(f"{path} cannot be written: {error.strerror}; name another file with --output") from None


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


def _check(options: argparse.Namespace) -> None:
    if options.action == "list" and options.id is not None:
        raise UsageError("list takes no ID; to see one session, say show ID")
    if options.action != "list" and not options.id:
        raise UsageError(f"which session? say {options.action} ID, with an ID of dragoman sessions list")
    if options.action != "export" and options.format in ("markdown", "html"):
        raise UsageError(f"--format {options.format} goes with export; {options.action} prints text or json")
    if options.action != "export" and options.output:
        raise UsageError("--output goes with export")
    if options.cwd is not None:
        options.cwd = str(Path(options.cwd).absolute())
