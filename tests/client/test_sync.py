"""The client without `async`."""

import asyncio
import shlex
import signal
import subprocess
import sys
import threading
from subprocess import PIPE

import pytest

from dragoman.client import connect_sync
from dragoman.client.errors import NotAnAgentError, TurnStoppedError
from dragoman.client.events import TextChunk
from dragoman.client.policies import Decision
from dragoman.testing import steps
from tests.client.driving import END, chunk, text
from tests.commands import raw, scripted


def test_events_are_read_with_for():
    with connect_sync(scripted([steps.Say("a "), steps.Say("b")])) as agent:
        session = agent.new_session("/")
        assert text(session.prompt("go")) == "a b"
        assert session.ask("again") == "a b"


def test_a_command_may_be_a_string():
    with connect_sync(shlex.join(scripted([steps.Say("hello")]))) as agent:
        assert agent.new_session("/").ask("go") == "hello"


def test_leaving_the_loop_cancels_the_turn():
    with connect_sync(scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])) as agent:
        session = agent.new_session("/")
        for event in session.prompt("go"):
            assert isinstance(event, TextChunk)
            break
        assert session.ask("again") == "b"


def test_another_thread_can_cancel():
    with connect_sync(scripted([steps.Say("a"), steps.WaitForCancel()])) as agent:
        session = agent.new_session("/")
        events = session.prompt("go")
        next(events)
        canceller = threading.Thread(target=session.cancel)
        canceller.start()
        assert list(events)[-1].stop_reason == "cancelled"
        canceller.join()


def test_agent_gets_answers_while_the_script_is_busy():
    asked = threading.Event()

    class Yes:
        async def decide(self, question):
            asked.set()
            return Decision("allow")

    with connect_sync(scripted([steps.Say("a"), steps.AskPermission()]), policy=Yes()) as agent:
        events = agent.new_session("/").prompt("go")
        next(events)
        assert asked.wait(20)
        assert text(events) == "outcome: selected yes"


def test_an_interrupt_cancels_the_turn_and_stops_the_agent():
    script = """
import sys
from dragoman.client import connect_sync
with connect_sync(sys.argv[1:]) as agent:
    session = agent.new_session("/")
    try:
        for event in session.prompt("go"):
            print(event.text, flush=True)
    except KeyboardInterrupt:
        print(session.ask("again"), flush=True)
        raise
"""
    agent = scripted([steps.Say("a"), steps.WaitForCancel()], [steps.Say("b")])
    with subprocess.Popen([sys.executable, "-c", script, *agent], stdout=PIPE, stderr=PIPE, text=True) as child:
        assert child.stdout.readline() == "a\n"
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=30)
    assert output == "b\n"
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert child.returncode == -signal.SIGINT


def test_errors_are_raised_synchronously():
    with pytest.raises(NotAnAgentError), connect_sync(["false"]):
        pass
    with connect_sync(scripted([steps.Stop("refusal")])) as agent, pytest.raises(TurnStoppedError):
        agent.new_session("/").ask("go")


def test_script_error_is_raised_and_stops_the_agent():
    with pytest.raises(ZeroDivisionError), connect_sync(scripted([steps.Say("a")])):
        _ = 1 / 0
    assert "dragoman" not in [thread.name for thread in threading.enumerate()]


async def test_client_works_inside_a_running_loop():
    assert asyncio.get_running_loop()
    with connect_sync(raw({}, [chunk("a"), END])) as agent:
        assert agent.new_session("/").ask("go") == "a"
