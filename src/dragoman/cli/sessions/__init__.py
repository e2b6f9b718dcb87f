"""`dragoman sessions`: list, show, copy, export or delete the stored sessions of any agent."""

import argparse
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from pathlib import Path

from dragoman.cli.agent_choice import ChosenAgent, choose_agent
from dragoman.cli.exit_codes import FAILED
from dragoman.cli.failure import busy_session_of, exit_code_of, explain
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_error, print_json, start_log, write_output
from dragoman.cli.session_choice import FoundSession, find_session
from dragoman.client import AgentConnection, Session, ToolCallState, connect
from dragoman.client.transcripts.export import TRAJECTORY_FORMATS, write_trajectories
from dragoman.client.transcripts.session_trajectory import read_sessions, trajectory_from_session
from dragoman.client.transcripts.transcript import (
    Transcript,
    TranscriptMessage,
    read_transcript,
    session_row,
    write_transcript,
)
from dragoman.errors import DragomanError, RemoteError
from dragoman.event_loop import run
from dragoman.home import home
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.protocol.methods import SESSION_ARCHIVE
from dragoman.protocol.session_origin import read_origin
from dragoman.running_bridge import find_bridge
from dragoman.store import STORE_VARIABLE, find_address
from dragoman.text import one_line
from dragoman.text.width import cells, cut


def main(options: argparse.Namespace) -> int:
    """Run the action. Return 1 on failure, 2 for a usage error."""
    _check(options)
    if options.action == "export" and options.format in TRAJECTORY_FORMATS and Path(options.id).is_file():
        return _export_recording(options)
    chosen, store = choose_agent(options), _choose_store(options)
    start_log("ERROR")
    try:
        return run(_run(options, chosen, store))
    except DragomanError as error:
        print_error("sessions", f"{explain(error, is_own=chosen.is_own)}{_hint(error, options)}")
        return exit_code_of(error, is_own=chosen.is_own)


async def _run(options: argparse.Namespace, chosen: ChosenAgent, store: str | None) -> int:
    if chosen.address is not None:
        connecting = chosen.address.connect(policy=None)
    else:
        env = None if store is None else {STORE_VARIABLE: store}
        connecting = connect(chosen.command, env=env, protocol_version=chosen.newest)
    async with connecting as agent:
        if options.action == "list":
            return await _list(agent, options)
        if options.action == "delete":
            from dragoman.cli.sessions.deletion import delete_sessions  # it loads the bridge

            return await delete_sessions(agent, options, is_own=chosen.is_own, store=store)
        found = await find_session(agent, options.id, options.cwd)
        return await _ACTIONS[options.action](agent, found, options)


async def _list(agent: AgentConnection, options: argparse.Namespace) -> int:
    if options.archived:
        agent.check.method(SESSION_ARCHIVE)
    archived = "only" if options.archived else "include" if options.all else "exclude"
    limit = options.limit or (None if options.format == "json" else SHOWN_SESSIONS)
    infos: list[v1.SessionInfo] = []
    has_more = False
    async with aclosing(agent.list_sessions(options.cwd, archived=archived)) as listed:
        async for info in listed:
            if has_more := len(infos) == limit:
                break
            infos.append(info)
    if options.format == "json":
        print_json(encode([session_row(info) for info in infos]))
    elif infos:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in table_lines(infos, width=width, long=options.long):
            print(line)
        if has_more:
            print(f"These are the latest {len(infos)}; --limit N prints more, --cwd DIR fewer.", file=sys.stderr)
    else:
        where = f" in {options.cwd}" if options.cwd else ""
        print(f"{one_line(agent.name)} has no {'archived ' * options.archived}sessions{where}.", file=sys.stderr)
    return 0


async def _show(agent: AgentConnection, found: FoundSession, options: argparse.Namespace) -> int:
    transcript = await _read(agent, found)
    print(write_transcript(transcript, "json" if options.format == "json" else "markdown"), end="")
    return 0


async def _load(agent: AgentConnection, found: FoundSession, options: argparse.Namespace) -> int:
    session = await _open(agent, found)
    transcript = read_transcript(session, agent.name, found.info)
    summary = {
        "session_id": session.id,
        "title": transcript.title,
        "cwd": session.cwd,
        "messages": sum(isinstance(entry, TranscriptMessage) for entry in transcript.entries),
        "tool_calls": sum(isinstance(entry, ToolCallState) for entry in transcript.entries),
        "mode": session.modes.current_mode_id if session.modes else None,
        "updated_at": transcript.updated_at,
    }
    if options.format == "json":
        print_json(encode(summary))
        return 0
    for name, value in summary.items():
        if value is not None:
            print(f"{name}: {one_line(str(value))}")
    return 0


async def _fork(agent: AgentConnection, found: FoundSession, options: argparse.Namespace) -> int:
    others = _others(agent, found)
    try:
        copy = await agent.fork(found.session_id, found.cwd, additional_directories=others)
    except RemoteError as refused:  # some agents copy only open sessions
        try:
            await agent.reopen_session(found.session_id, found.cwd, additional_directories=others)
        except DragomanError:
            raise refused from None
        copy = await agent.fork(found.session_id, found.cwd, additional_directories=others)
    if options.format == "json":
        print_json(encode({"session_id": copy.id, "forked_from": found.session_id}))
    else:
        print(one_line(copy.id))
    return 0


async def _title(agent: AgentConnection, found: FoundSession, options: argparse.Namespace) -> int:
    kept = await agent.set_title(found.session_id, options.title)
    _print_result(options, {"session_id": found.session_id, "title": kept}, f"{found.session_id} is now {kept!r}.")
    return 0


async def _archive(agent: AgentConnection, found: FoundSession, options: argparse.Namespace) -> int:
    await agent.archive(found.session_id)
    _print_result(options, {"archived": found.session_id}, f"Archived {_name(found)}.")
    return 0


async def _unarchive(agent: AgentConnection, found: FoundSession, options: argparse.Namespace) -> int:
    await agent.unarchive(found.session_id)
    _print_result(options, {"unarchived": found.session_id}, f"{_name(found)} was unarchived.")
    return 0


def _print_result(options: argparse.Namespace, result: dict[str, str], text: str) -> None:
    if options.format == "json":
        print_json(encode(result))
    else:
        print(one_line(text))


def _name(found: FoundSession) -> str:
    title = found.info.title if found.info else None
    return one_line(f"{title} ({found.session_id})" if title else found.session_id)


async def _export(agent: AgentConnection, found: FoundSession, options: argparse.Namespace) -> int:
    if options.format in TRAJECTORY_FORMATS:
        session = await _open(agent, found)
        text = write_trajectories([trajectory_from_session(session, agent.info)], options.format)
    else:
        text = write_transcript(await _read(agent, found), "markdown" if options.format == "text" else options.format)
    _write_export(options, text)
    return 0


def _export_recording(options: argparse.Namespace) -> int:
    try:
        _write_export(options, write_trajectories(read_sessions(options.id), options.format))
    except DragomanError as error:
        print_error("sessions", error)
        return FAILED
    return 0


def _write_export(options: argparse.Namespace, text: str) -> None:
    write_output(options.output, text)
    if options.output not in (None, "-"):
        print(f"Wrote {options.output}.", file=sys.stderr)


_ACTIONS: dict[str, Callable[[AgentConnection, FoundSession, argparse.Namespace], Awaitable[int]]] = {
    "show": _show,
    "load": _load,
    "fork": _fork,
    "title": _title,
    "archive": _archive,
    "unarchive": _unarchive,
    "export": _export,
}


async def _open(agent: AgentConnection, found: FoundSession) -> Session:
    return await agent.load_session(found.session_id, found.cwd, additional_directories=_others(agent, found))


def _others(agent: AgentConnection, found: FoundSession) -> list[str]:
    """Return the session's other directories, if the agent supports them."""
    return found.additional_directories if agent.capabilities.session_capabilities.additional_directories else []


async def _read(agent: AgentConnection, found: FoundSession) -> Transcript:
    return read_transcript(await _open(agent, found), agent.name, found.info)


def _hint(error: DragomanError, options: argparse.Namespace) -> str:
    """Return a hint on how to reach a session that the agent of a bridge has open."""
    busy = busy_session_of(error)
    if busy is None or options.url is not None:
        return ""
    bridge = find_bridge(home())
    url = "http://127.0.0.1:8421/acp" if bridge is None else bridge.acp_url()
    return (
        f"; if that is the agent of a dragoman serve, use: dragoman sessions {options.action} {options.id or busy} "
        f"--url {url}"
    )


def _choose_store(options: argparse.Namespace) -> str | None:
    """Return the address of the database that stores the sessions, or None. Raises UsageError."""
    if options.url is not None:
        if options.store is not None:
            raise UsageError("--store is for an agent we start and --url for a running one; use only one of them")
        return None
    if options.action != "delete" and options.store is None:
        return None  # the agent reads the variable itself
    try:
        return find_address(options.store)
    except DragomanError as error:
        raise UsageError(str(error)) from None


def _check(options: argparse.Namespace) -> None:
    options.id, options.title = [*options.words, None, None][:2]
    if options.action == "delete":
        _check_deletion(options)
    else:
        _check_words(options)
    if options.action != "export" and options.format in ("markdown", "html", *TRAJECTORY_FORMATS):
        raise UsageError(f"--format {options.format} needs export; {options.action} prints text or json")
    if options.action != "export" and options.output:
        raise UsageError("--output needs export")
    if options.cwd is not None:
        options.cwd = str(Path(options.cwd).absolute())


def _check_words(options: argparse.Namespace) -> None:
    action = options.action
    if action == "list" and options.id is not None:
        raise UsageError("list takes no ID; to see one session, run `dragoman sessions show ID`")
    if action != "list" and not options.id:
        raise UsageError(f"no session given; expected {action} ID (run `dragoman sessions` to list them)")
    if action == "title" and not options.title:
        raise UsageError("no title given; expected title ID TITLE")
    if len(options.words) > (2 if action == "title" else 1):
        more = "; put a title of several words in quotes" if action == "title" else ""
        raise UsageError(f"{action} takes one ID{more}; to set a title, use title ID TITLE")
    if action != "list" and (options.archived or options.all):
        raise UsageError("--archived needs list, and --all needs list or delete")
    if options.older_than is not None:
        raise UsageError("--older-than needs delete")
    if action != "list" and options.limit is not None:
        raise UsageError("--limit needs list")


def _check_deletion(options: argparse.Namespace) -> None:
    ways = [bool(options.words), options.all, options.older_than is not None]
    if not any(ways):
        raise UsageError("no sessions given; expected delete ID, --all or --older-than 30d")
    if sum(ways) > 1:
        raise UsageError("delete takes IDs, --all or --older-than; use only one of them")
    if options.archived or options.limit is not None:
        raise UsageError(f"{'--archived' if options.archived else '--limit'} needs list")


SHOWN_SESSIONS = 50
"""Sessions in a table without `--limit`."""

HEAD = ("ID", "TITLE", "UPDATED", "DIRECTORY")
SHORT_ID = 8
MIN_TITLE = 12
MAX_TITLE = 60


def table_lines(infos: Sequence[v1.SessionInfo], *, width: int | None, long: bool = False) -> Iterator[str]:
    """Yield the lines of the table. `width` is the terminal's width. `long` disables shortening."""
    # The title is the only column that shrinks, so that ids and directories can be copied from the table.
    shown = None if long else id_length([info.session_id for info in infos])
    rows = [HEAD, *(_cells(info, shown) for info in infos)]
    widths = [max(cells(row[column]) for row in rows) for column in range(len(HEAD) - 1)]
    if not long:
        others = widths[0] + widths[2] + max(cells(row[3]) for row in rows) + 3 * 2
        room = MAX_TITLE if width is None else max(MIN_TITLE, min(MAX_TITLE, width - others))
        widths[1] = min(widths[1], room)
    for row in rows:
        padded = [_pad(cell, size) for cell, size in zip(row, widths, strict=False)]
        yield "  ".join([*padded, row[-1]]).rstrip()


def id_length(ids: Sequence[str]) -> int:
    """Return the shortest prefix length that keeps these ids distinct."""
    length, longest = SHORT_ID, max(map(len, ids), default=SHORT_ID)
    different = len(set(ids))
    while length < longest and len({session_id[:length] for session_id in ids}) < different:
        length += 1
    return length


def _cells(info: v1.SessionInfo, id_letters: int | None) -> tuple[str, ...]:
    return (
        one_line(info.session_id[:id_letters]),
        one_line(f"{info.title or ''}{_marks(info)}"),
        _time(info.updated_at),
        _directory(one_line(info.cwd)),
    )


def _marks(info: v1.SessionInfo) -> str:
    origin = read_origin(info.meta)
    return (" (archived)" if info.archived else "") + ("" if origin is None else f" ({origin})")


def _time(text: str | None) -> str:
    if text is None:
        return ""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return one_line(text)


def _directory(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def _pad(text: str, size: int) -> str:
    fitting = cut(text, size)
    return fitting + " " * (size - cells(fitting))
