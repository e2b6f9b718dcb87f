"""A turn can be cancelled, and its client can vanish, at every point at which the turn waits.

Each scenario is a different kind of turn. It is run repeatedly and interrupted at its first point, its second, and so
on, until the turn ends before the chosen point. After each interruption, everything that a client can rely on is
checked. `make soak` tries all interruptions at all points. CI tries the first point and a random sample.
"""

import asyncio
import itertools
import json
import logging
import os
import random
from collections import Counter

import pytest

from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.models.message import ToolUse, UserMessage
from dragoman.assistant.models.model import ReplyRetry, ReplyText, ReplyThought, ToolStart
from dragoman.errors import ContextOverflowError
from dragoman.protocol import v1
from tests.assistant.coming_back import load
from tests.assistant.interrupting import Lines, Run, Steps, descendants, tapped_agent
from tests.assistant.running import session_in
from tests.assistant.tools.working import Buffers, Terminals
from tests.proc.processes import alive, announced
from tests.waiting import until

SOAK = bool(os.environ.get("DRAGOMAN_SOAK"))
MARKER = "sleep 6123"
FINAL = ("completed", "failed")
LARGE = "0123456789abcde\n" * 4096


class Acting:
    """A model that follows a script, waits before each part, and summarizes on request."""

    name = "acting"
    context_size = 1000
    content_types = frozenset()
    thought_levels = ()
    summarises = True

    def __init__(self, *replies):
        self._replies = iter(replies)
        self.messages = []

    def start(self):
        return self

    async def close(self):
        pass

    async def reply(self, request):
        for part in self._parts(request):
            await asyncio.sleep(0)
            if isinstance(part, Exception):
                raise part
            yield part

    def _parts(self, request):
        if not request.tools:
            return [ReplyText("a "), ReplyText("summary")]
        prompt = [message for message in request.messages if isinstance(message, UserMessage)][-1]
        if prompt.content[0].text != "again":
            return next(self._replies)
        self.messages = list(request.messages)
        return [ReplyText("here again")]


_ids = itertools.count()


def use(name, **arguments):
    return ToolUse(f"call-{next(_ids)}", name, arguments)


class Scenario:
    """A kind of turn."""

    prompt = "go"
    slow = False
    capabilities = None

    def __init__(self, cwd):
        self.cwd = cwd
        self.home = cwd.parent / "home"

    def replies(self):
        return [[ReplyText("done")]]

    def set_up(self, routes):
        pass

    def check(self, run):
        """Check what only this scenario has."""


class Words(Scenario):
    """Thoughts, text, a tool announced and withdrawn by a retry, and usage."""

    def replies(self):
        retry = [
            ReplyThought("hm"),
            ToolStart("call-void", "read_file"),
            ReplyRetry("slow down", 0),
            ReplyThought("now"),
            ReplyText("on"),
        ]
        return [[*retry, ReplyText("e, "), TokenUsage(20, 3), ReplyText("two")]]


class Reads(Scenario):
    """Parallel reads, one of them too large to be sent at once, a missing tool and a plan."""

    slow = True

    def replies(self):
        for name in ("a", "b"):
            (self.cwd / name).write_text(LARGE)
        first = use("read_file", path="a")
        plan = use("update_plan", entries=[{"content": "look", "priority": "high", "status": "pending"}])
        more = [use("read_file", path="b"), use("list_directory", path="."), use("fly"), plan]
        return [[ToolStart(first.id, first.name), first, *more, TokenUsage(9, 9)], [ReplyText("read")]]


class Edits(Scenario):
    """Questions and written files."""

    slow = True

    def replies(self):
        (self.cwd / "old").write_text("one\ntwo\n")
        edit = use("edit_file", path="old", edits=[{"old": "two", "new": "three"}])
        return [[use("write_file", path="new", content=LARGE)], [edit], [ReplyText("written")]]


class Compactions(Scenario):
    """A conversation that outgrows the model, at once and gradually. An interrupted compaction is repeated."""

    def replies(self):
        (self.cwd / "a").write_text("x")
        return [
            [ToolStart("call-overflow", "read_file"), ContextOverflowError("too long")],
            [use("read_file", path="a"), TokenUsage(900, 5)],
            [ReplyText("short again")],
        ]


class Compact(Scenario):
    """The compact command."""

    prompt = "/compact"


class Adoption(Scenario):
    """The project's agent file, with its question."""

    def replies(self):
        (self.cwd / "dragoman.yaml").write_text("instructions: Be kind.\npermissions: {mode: code}\n")
        return [[use("write_file", path="new", content="x")], [ReplyText("adopted")]]


class Elsewhere(Scenario):
    """Files and commands of the client."""

    capabilities = v1.ClientCapabilities(
        fs=v1.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
    )

    def replies(self):
        (self.cwd / "old").write_text("one\n")
        return [
            [use("read_file", path="old"), use("write_file", path="old", content="two\n")],
            [use("run_command", command="make")],
            [ReplyText("done there")],
        ]

    def set_up(self, routes):
        self.terminals = Terminals()
        self.terminals.set_up(routes)
        Buffers().set_up(routes)

    def check(self, run):
        calls = self.terminals.calls
        assert run.tap.broken or calls.count("release") == calls.count("create")


class Commands(Scenario):
    """Our own commands, which leave a child, and a search in its own process."""

    def replies(self):
        (self.cwd / "a").write_text("needle\n")
        leaving = f"{MARKER} & echo begun; sleep 0.12"
        return [[use("run_command", command=leaving), use("search_files", pattern="needle")], [ReplyText("ran")]]


CHEAP = (Words, Reads, Edits, Compactions, Compact, Adoption, Elsewhere)
"""Kinds that start no process, because processes are slow."""

all_of_it = pytest.mark.timeout(600 if SOAK else 60)


# ── actions at the point ────────────────────────────────────────────────────────────────────────


def cancel(run):
    run.tap.put_in("session/cancel", sessionId=run.session_id)


def cancel_twice(run):
    cancel(run)
    asyncio.get_running_loop().call_soon(cancel, run)


def take_back(run):
    prompt = next(line for line in map(json.loads, run.tap.incoming) if line.get("method") == "session/prompt")
    run.tap.put_in("$/cancel_request", requestId=prompt["id"])


def vanish(run):
    run.tap.break_off()


async def interrupt(scenario, points, act):
    """Run a scenario, act at the point, continue the session if its client remains, and always load it."""
    model = Acting(*scenario.replies())
    options = {"capabilities": scenario.capabilities, "slow": scenario.slow, "set_up": scenario.set_up}
    async with tapped_agent(scenario.home, model, decide=lambda _: "allow", **options) as (client, tap):
        session_id = await client.new_session(str(scenario.cwd))
        points.arm(tap, lambda: act(run))
        run = Run(tap, session_id, MARKER)
        prompting = asyncio.ensure_future(client.prompt(session_id, scenario.prompt))
        prompting.add_done_callback(lambda _: points.disarm())
        await until(lambda: prompting.done() or tap.broken)
        if act is not vanish:
            assert (await client.prompt(session_id, "again")).stop_reason == "end_turn"
        prompting.cancel()
        await asyncio.wait([prompting])
    check_replay(run, model.messages, *(await come_back(scenario, session_id)))
    scenario.check(run)
    return run


async def come_back(scenario, session_id):
    """Load a session in another agent. Return its updates and what the model remembers."""
    model = Acting()
    async with tapped_agent(scenario.home, model) as (client, tap):
        await load(client, session_id, scenario.cwd)
        updates = tap.updates()
        assert (await client.prompt(session_id, "again")).stop_reason == "end_turn"
    return updates, model.messages


# ── checks after the interruption ───────────────────────────────────────────────────────────────


def check_replay(run, remembered, replayed, known):
    seen = run.tap.updates()
    assert replayed[: len(seen)] == seen
    assert run.tap.broken or len(replayed) == len(seen)
    assert known[: len(remembered)] == remembered
    check_calls(decoded(replayed))


def check_turn(run, whole):
    updates, later = decoded(run.updates), decoded(run.later_updates)
    check_calls(updates)
    check_calls(later)
    assert said(later) == "here again"
    assert run.stop_reason == "cancelled" or summary(updates) == whole
    assert run.stop_reason in ("cancelled", "end_turn")
    assert run.left_running == []
    assert run.unanswered == []


def check_calls(updates):
    """Check that every call was announced once and ended once, with no update before or after."""
    begun, ended = set(), set()
    for update in updates:
        call_id = update.get("toolCallId")
        if call_id is None:
            continue
        if update["sessionUpdate"] == "tool_call":
            assert call_id not in begun
            begun.add(call_id)
        assert call_id in begun - ended
        if update.get("status") in FINAL:
            ended.add(call_id)
    assert begun == ended


def decoded(lines):
    return [json.loads(line)["params"]["update"] for line in lines]


def said(updates):
    chunks = [update for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
    return "".join(chunk["content"]["text"] for chunk in chunks)


def summary(updates):
    """Return the outcome of a turn, regardless of the order in which its calls ended."""
    return Counter(update["status"] for update in updates if update.get("status") in FINAL), said(updates)


def place(tmp_path, kind, name):
    cwd = tmp_path / name / "project"
    cwd.mkdir(parents=True)
    return kind(cwd)


async def at_every_point(tmp_path, kind, points, act, *, stride):
    """Interrupt turns of a kind at one point after another, until a turn ends before its point."""
    stride = 1 if SOAK else stride
    others = descendants()
    uncut = await interrupt(place(tmp_path, kind, "uncut"), points(1_000_000), cancel)
    whole = summary(decoded(uncut.updates))
    chosen, reached, ends = 0, True, set()
    while reached:
        counting = points(chosen)
        run = await interrupt(place(tmp_path, kind, str(chosen)), counting, act)
        assert descendants() <= others
        if act is not vanish:
            check_turn(run, whole)
        chosen, reached = chosen + (stride if chosen else random.randint(1, stride)), counting.reached
        ends.add(run.stop_reason)
    assert ends == {"end_turn", None if act is vanish else "cancelled"}


@pytest.fixture(autouse=True)
def nothing_goes_wrong_unseen(caplog):
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.timeout(180)  # dozens of turns, each with its own agent
@pytest.mark.parametrize("kind", CHEAP)
async def test_turn_can_be_cancelled_at_every_wait(kind, tmp_path):
    await at_every_point(tmp_path, kind, Steps, cancel, stride=8)


@pytest.mark.soak
@all_of_it
@pytest.mark.parametrize("kind", CHEAP)
async def test_client_can_vanish_at_every_wait(kind, tmp_path):
    await at_every_point(tmp_path, kind, Steps, vanish, stride=16)


@pytest.mark.extended
@pytest.mark.soak
@all_of_it
@pytest.mark.parametrize("act", [cancel, vanish])
@pytest.mark.parametrize("kind", CHEAP)
async def test_turn_can_be_interrupted_after_every_line(kind, act, tmp_path):
    await at_every_point(tmp_path, kind, Lines, act, stride=16)


@pytest.mark.extended
@pytest.mark.soak
@all_of_it
@pytest.mark.parametrize("act", [cancel_twice, take_back])
@pytest.mark.parametrize("kind", CHEAP)
async def test_turn_can_be_cancelled_twice_or_by_its_request(kind, act, tmp_path):
    await at_every_point(tmp_path, kind, Steps, act, stride=24)


@pytest.mark.soak
@all_of_it
@pytest.mark.parametrize("act", [cancel, vanish])
async def test_processes_end_wherever_a_turn_is_interrupted(act, tmp_path):
    await at_every_point(tmp_path, Commands, Steps, act, stride=24)


async def test_process_that_ignores_sigterm_is_gone_when_the_cancel_is_answered(tmp_path):
    command = 'echo $$ > pids; (trap "" TERM; exec sleep 6123) > /dev/null & echo $! >> pids'
    reply = f"- - tool: {{name: run_command, arguments: {{command: {json.dumps(command)}}}}}\n- - delay_s: 600\n"
    async with session_in(tmp_path, reply, decide=lambda _: "allow") as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "go"))
        shell, stubborn = await announced(tmp_path / "pids", 2)
        await until(lambda: not alive(shell))
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"
        assert not alive(stubborn)


async def test_cancel_before_the_prompt_or_after_its_end_does_nothing(tmp_path):
    async with session_in(tmp_path) as (client, session_id):
        for _ in range(2):
            await client.cancel(session_id)
            assert (await client.prompt(session_id, "go")).stop_reason == "end_turn"
        await client.cancel(session_id)
    assert client.text() == "hellohello"


async def test_cancel_directly_after_the_prompt_cancels_it(tmp_path):
    async with session_in(tmp_path, "- - delay_s: 600\n") as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "go"))
        await asyncio.sleep(0)
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"


async def test_cancel_of_another_session_or_request_does_nothing(tmp_path):
    async with session_in(tmp_path, "- - text: begun\n  - delay_s: 0.05\n  - text: done\n") as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "go"))
        await client.wait_for(lambda c: bool(c.text()))
        await client.cancel("no-such-session")
        await client.cancel(await client.new_session(str(tmp_path)))
        await client.connection.notify_extension("$/cancel_request", {"requestId": 4711})
        assert (await turn).stop_reason == "end_turn"
    assert client.text() == "begundone"
