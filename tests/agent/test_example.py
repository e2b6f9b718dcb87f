"""The program of the documentation runs unchanged: in a process, under the checker, and by its name."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.client import connect
from dragoman.client.policies import allow_all

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "notes_agent.py"


def environment(home):
    return {**os.environ, "DRAGOMAN_HOME": str(home)}


@pytest.mark.parametrize(
    ("program", "options", "passed"),
    [
        pytest.param(EXAMPLE, [], 85, id="example", marks=pytest.mark.extended),
        pytest.param(
            Path(__file__).with_name("rich_agent.py"), ["--auth", "nothing"], 135, id="rich", marks=pytest.mark.extended
        ),
    ],
)
def test_plain_agent_passes_every_rule_that_it_exercises(tmp_path, program, options, passed):
    command = [sys.executable, "-m", "dragoman", "check", "agent", "--format", "json", *options, "--"]
    checked = subprocess.run(
        [*command, sys.executable, program], capture_output=True, env=environment(tmp_path), cwd=tmp_path, check=False
    )
    assert checked.returncode == 0, checked.stderr.decode()
    verdicts = {result["id"]: result["verdict"] for result in json.loads(checked.stdout)["results"]}
    assert [rule for rule, verdict in verdicts.items() if verdict == "fail"] == []
    assert list(verdicts.values()).count("pass") >= passed


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, str(EXAMPLE)],
        [sys.executable, "-m", "dragoman", "agent", "notes_agent:agent"],
    ],
    ids=["run", "by name"],
)
async def test_example_answers_writes_and_counts(tmp_path, command):
    options = {"cwd": EXAMPLE.parent, "env": {"DRAGOMAN_HOME": str(tmp_path / "home")}, "policy": allow_all()}
    async with connect(command, **options) as agent:
        session = await agent.new_session(tmp_path)
        result = await session.run("save this")
        assert result.text == "You said: save this. Prompt number 1."
        assert [call.status for call in result.tool_calls] == ["completed", "completed"]
        assert (await session.run("/count")).text == "1"
        assert (agent.info.name, agent.info.title, agent.info.version) == ("notes", "Notes", "1.0.0")
    assert (tmp_path / "notes.txt").read_text() == "save this"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("notes_agent", "expected MODULE:NAME"),
        ("no_such_module:agent", "no module no_such_module"),
        ("notes_agent.py:agent", "is a file, not a module; dragoman agent notes_agent:agent, or python notes_agent.py"),
        ("/a/notes_agent.py:agent", "cd /a, then dragoman agent notes_agent:agent, or python /a/notes_agent.py"),
        ("notes_agent:agnet", "notes_agent has no agnet; it has agent"),
        ("notes_agent:Turn", "expected an Agent of dragoman.agent"),
    ],
)
def test_module_without_an_agent_is_explained(place, words, tmp_path):
    command = [sys.executable, "-m", "dragoman", "agent", place]
    ran = subprocess.run(
        command, capture_output=True, text=True, cwd=EXAMPLE.parent, env=environment(tmp_path), check=False
    )
    assert ran.returncode == 2
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr


def test_declaring_an_agent_imports_little():
    code = "import sys; from dragoman.agent import Agent, Turn; Agent('x'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"httpx", "httpx2", "mcp", "pydantic", "sqlite3", "numpy", "dragoman.store", "dragoman.client"}
    assert heavy & set(loaded) == set()
    assert not [name for name in loaded if name.startswith(("dragoman.agent.servers", "dragoman.assistant"))]


@pytest.mark.extended
def test_function_that_never_ends_does_not_keep_the_process_alive(tmp_path):
    program = tmp_path / "stubborn.py"
    program.write_text(
        "import asyncio\n"
        "from dragoman.agent import Agent\n"
        "agent = Agent('stubborn')\n"
        "@agent.on_prompt\n"
        "async def answer(turn):\n"
        "    await turn.say('begun')\n"
        "    while True:\n"
        "        try:\n"
        "            await asyncio.Event().wait()\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
        "agent.run()\n"
    )
    with subprocess.Popen(
        [sys.executable, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path / "home"),
    ) as process:
        for number, (method, params) in enumerate(
            [
                ("initialize", {"protocolVersion": 1}),
                ("session/new", {"cwd": str(tmp_path), "mcpServers": []}),
            ]
        ):
            line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            while (answer := json.loads(process.stdout.readline())).get("id") != number:
                pass
        params = {"sessionId": answer["result"]["sessionId"], "prompt": [{"type": "text", "text": "go"}]}
        process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": params}).encode() + b"\n"
        )
        process.stdin.flush()
        while b"begun" not in process.stdout.readline():
            pass
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"ignored its cancellation" in stderr
