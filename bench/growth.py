"""What grows with the work, at three sizes each: diffs, searches, lists, idle sessions and long outputs.

The growth of a figure over its sizes says more than the figure. A peer is the plain way to do the same.
"""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import perf_counter

from bench import commands
from bench.bridge import AGENT, STOP_TIMEOUT_S
from bench.client_run import run_reporter
from bench.listing import make_home
from bench.measure import Measure, MissingError, Target
from bench.raw_agent import RawAgent
from bench.size import size
from dragoman.bridge.delivery.message_index import IndexedFile, MessageIndex
from dragoman.bridge.delivery.message_text import MessageTexts
from dragoman.bridge.delivery.stored_histories import StoredHistories, StoredHistory
from dragoman.client import connect_url
from dragoman.protocol.update_lines import update_lines
from dragoman.store.block import Draft, encode_header
from dragoman.store.block_log import BlockReader, LogPosition
from dragoman.store.disk import Disk
from dragoman.store.history import make_header
from dragoman.store.runs import MessageRun

OURS = "dragoman"
GIT = "git diff"
READING = "reading the journals"

LINES = (size(2_000, 200), size(20_000, 400), size(200_000, 800))
SESSIONS = (size(1_000, 20), size(10_000, 40), size(100_000, 80))
IDLE_SESSIONS = (size(100, 2), size(1_000, 4), size(10_000, 8))
LISTED_SESSIONS = (size(100, 10), size(1_000, 60), size(10_000, 120))
OUTPUT_MB = (size(1, 1), size(5, 2), size(20, 3))

CHANGED_EVERY = 20
MESSAGES = 4
WORDS = "The parser drops the last line of a file that has no newline at its end, so the test for it fails. " * 3
BATCH = 100
MB = 1_000_000


# ── diffs ────────────────────────────────────────────────────────────────────────────────────────────


@cache
def make_texts(lines: int) -> tuple[Path, Path]:
    """Write a text with many lines, and the same with every twentieth line changed."""
    directory = Path(tempfile.mkdtemp(dir=os.environ["DRAGOMAN_HOME"]))
    before, after = directory / "before", directory / "after"
    text = [f"line {number % 997} of the file" for number in range(lines)]
    before.write_text("\n".join(text))
    after.write_text("\n".join(f"{line}, {n}" if n % CHANGED_EVERY == 0 else line for n, line in enumerate(text)))
    return before, after


def time_diff_ms(lines: int) -> float:
    """Return the time of the page's comparison, without reading the files."""
    node = shutil.which("node")
    if node is None:
        raise MissingError("node is not here")
    found = run_reporter((node, str(commands.PEERS / "diff_texts.mjs"), *map(str, make_texts(lines))))
    changed = -(-lines // CHANGED_EVERY)
    if (found["added"], found["removed"]) != (changed, changed):
        raise RuntimeError(f"{changed} lines differ, but the comparison found {found}")
    return found["ms"]


def time_git_ms(lines: int) -> float:
    """Return the time of the whole process."""
    texts = make_texts(lines)
    started = perf_counter()
    subprocess.run(["git", "diff", "--no-index", "--numstat", *texts], stdout=subprocess.DEVNULL, check=False)
    return 1000 * (perf_counter() - started)


# ── searches ─────────────────────────────────────────────────────────────────────────────────────────


@cache
def make_journals(sessions: int) -> tuple[MessageIndex, list[IndexedFile]]:
    """Write the journals of many sessions, one in a hundred with the searched word, and index them."""
    directory = Path(tempfile.mkdtemp(dir=os.environ["DRAGOMAN_HOME"]))
    files = [write_journal(directory, number) for number in range(sessions)]
    index = MessageIndex(Disk(), directory / "search.db")
    for begin in range(0, sessions, BATCH):
        index.update(files[begin : begin + BATCH])
    return index, files


def write_journal(directory: Path, number: int) -> IndexedFile:
    session_id, path = f"session-{number}", directory / f"{number}.jsonl"
    first, checksum = encode_header(make_header(session_id, "/", []), number)
    draft = Draft()
    for message in range(MESSAGES):
        text = f"{WORDS}{number} {message}{' needle' if number % 100 == 0 else ''}"
        kind = "agent" if message % 2 else "user"
        update = {"sessionUpdate": f"{kind}_message_chunk", "content": {"type": "text", "text": text}}
        draft.add_lines(update_lines(session_id, [json.dumps(update).encode()]))
    path.write_bytes(first + draft.seal(1, number, checksum)[0])
    return IndexedFile(session_id, str(path), LogPosition(len(first), 0, checksum))


def time_search_ms(sessions: int) -> float:
    """Find the first hundred messages with a word in the index, and read their texts."""
    index, _ = make_journals(sessions)
    started = perf_counter()
    found = index.find(["needle"], None, 100)
    texts = index.read([each.number for each in found])
    elapsed = perf_counter() - started
    if not texts or not all("needle" in text for text in texts):
        raise RuntimeError("the search has not found the word")
    return 1000 * elapsed


def time_reading_ms(sessions: int) -> float:
    """Find the word by reading all journals."""
    _, files = make_journals(sessions)
    started = perf_counter()
    found = 0
    for file in files:
        reader, texts = BlockReader(Disk(), Path(file.path), file.start), MessageTexts()
        while blocks := reader.read():
            runs = [MessageRun(lines, first, 0, count=n) for block in blocks for first, n, lines in block.runs()]
            found += sum("needle" in message.text for message in texts.feed(runs))
        reader.close()
    if not found:
        raise RuntimeError("the search has not found the word")
    return 1000 * (perf_counter() - started)


@cache
def make_titles(sessions: int) -> StoredHistories:
    return StoredHistories(
        StoredHistory(
            id=f"session-{number}",
            cwd=f"/project-{number % 100}",
            title=f"Fix the parser {number}",
            updated_ms=number,
            prompted=True,
        )
        for number in range(sessions)
    )


def time_titles_ms(sessions: int) -> float:
    """Find the titles with a word, for the second time as for every further letter of a search."""
    titles, found = make_titles(sessions), 0
    started = 0.0
    for _ in range(2):
        started = perf_counter()
        for part in titles.search(["parser", "7"], [""], None, lambda stored: (stored.title or "").lower()):
            found += len(part)
    if not found:
        raise RuntimeError("the search has found no title")
    return 1000 * (perf_counter() - started)


# ── sessions and outputs ─────────────────────────────────────────────────────────────────────────────


@cache
def measure_idle(sessions: int) -> tuple[float, float]:
    """Return the kilobytes and the descriptors per session of an agent that has answered one prompt in each."""
    with tempfile.TemporaryDirectory() as home:
        script = Path(home) / "script.yaml"
        script.write_text('- - text: "hello"\n')
        command = commands.dragoman("agent", "--model", f"script:{script}")
        with RawAgent(command, environment={"DRAGOMAN_HOME": home}, cwd=Path(home)) as agent:
            agent.initialize()
            converse(agent, home)
            memory, descriptors = agent.read_rss_bytes(), agent.count_descriptors()
            for _ in range(sessions):
                converse(agent, home)
            grown = agent.read_rss_bytes() - memory
            return grown / sessions / 1000, (agent.count_descriptors() - descriptors) / sessions


def converse(agent: RawAgent, cwd: str) -> None:
    session_id = agent.call("session/new", {"cwd": cwd, "mcpServers": []}).result["sessionId"]
    prompt = [{"type": "text", "text": "What is this?"}]
    agent.call("session/prompt", {"sessionId": session_id, "prompt": prompt})


def measure_output(megabytes: int) -> float:
    """Return the growth of the bridge's memory per byte of one long output."""
    command = (*commands.dragoman("serve", "--format", "json", "--port", "0"), "--", *AGENT)
    with (
        tempfile.TemporaryDirectory() as home,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | {"DRAGOMAN_HOME": home}
        ) as process,
    ):
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            return asyncio.run(_grow(said["acp"], said["token"], process.pid, megabytes * MB))
        finally:
            process.terminate()
            process.wait(STOP_TIMEOUT_S)


async def _grow(url: str, token: str, pid: int, output_bytes: int) -> float:
    async with connect_url(url, token=token) as agent:
        session = await agent.new_session("/")
        await session.ask(json.dumps({"bytes": 1000}))
        before = read_rss(pid)
        await session.ask(json.dumps({"bytes": output_bytes}))
        return (read_rss(pid) - before) / output_bytes


def read_rss(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except FileNotFoundError:
        raise MissingError("the memory of another process is read on Linux only") from None
    return pages * os.sysconf("SC_PAGE_SIZE")


def time_list_ms(sessions: int, *options: str) -> float:
    """Return the time of `dragoman sessions`."""
    environment = os.environ | {"DRAGOMAN_HOME": str(make_home(sessions))}
    command = commands.dragoman("sessions", *options)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=True)
    started = perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=True)
    return 1000 * (perf_counter() - started)


def _measure(
    title: str, unit: str, contenders: dict[str, Callable[[], float]], at_most: float | None = None, rounds: int = 3
) -> Measure:
    targets = () if at_most is None else (Target(OURS, None, "at most", at_most),)
    ratios = tuple((OURS, other) for other in contenders if other != OURS)
    return Measure("growth", title, unit, contenders, targets, rounds, 1, ratios)


def _measures() -> list[Measure]:
    found: list[Measure] = []
    for lines in LINES:
        contenders = {OURS: lambda lines=lines: time_diff_ms(lines), GIT: lambda lines=lines: time_git_ms(lines)}
        found.append(_measure(f"diff of {lines:,} lines", "ms", contenders))
    for sessions, at_most in zip(SESSIONS, (200.0, 200.0, 500.0), strict=True):
        by_index: dict[str, Callable[[], float]] = {
            OURS: lambda sessions=sessions: time_search_ms(sessions),
            READING: lambda sessions=sessions: time_reading_ms(sessions),
        }
        found.append(_measure(f"a word in {sessions:,} sessions", "ms", by_index, at_most))
    for sessions in SESSIONS:
        by_title = {OURS: lambda sessions=sessions: time_titles_ms(sessions)}
        found.append(_measure(f"a title in {sessions:,} sessions", "ms", by_title))
    for sessions in IDLE_SESSIONS:
        memory = {OURS: lambda sessions=sessions: measure_idle(sessions)[0]}
        found.append(_measure(f"memory per idle session, {sessions:,} of them", "KB", memory, 10.0, rounds=1))
        descriptors = {OURS: lambda sessions=sessions: measure_idle(sessions)[1]}
        found.append(_measure(f"descriptors per idle session, {sessions:,} of them", "", descriptors, 0.1, rounds=1))
    for megabytes in OUTPUT_MB:
        output = {OURS: lambda megabytes=megabytes: measure_output(megabytes)}
        found.append(_measure(f"memory of the bridge per byte of {megabytes} MB", "B", output, 2.0))
    for sessions in LISTED_SESSIONS:
        listed = {
            OURS: lambda sessions=sessions: time_list_ms(sessions),
            "all as JSON": lambda sessions=sessions: time_list_ms(sessions, "--format", "json"),
        }
        found.append(_measure(f"`dragoman sessions` with {sessions:,}", "ms", listed))
    return found


MEASURES = tuple(_measures())
