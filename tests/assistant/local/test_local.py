"""A real model, SmolLM2-135M: what it says is not judged, only how it comes."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from contextlib import aclosing
from pathlib import Path

import jsonschema
import msgspec
import pytest

from dragoman.assistant.models.local import LocalOptions, local_model
from dragoman.assistant.models.local.engine import ENGINE
from dragoman.assistant.models.message import AssistantMessage, ToolMessage, ToolResult, ToolUse
from dragoman.assistant.models.model import ModelRequest, ReplyStop, ReplyText, ReplyThought, TokenUsage
from dragoman.errors import ModelFailure
from dragoman.installation import how_to_add
from tests.assistant.local.asking import ask, asking, prompt, said, tool
from tests.waiting import until

pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: pip install dragoman[local]")

READ = tool(
    "read_file",
    "Read a file",
    type="object",
    properties={"path": {"type": "string", "maxLength": 12}, "line": {"type": "integer", "minimum": 1, "maximum": 99}},
    required=["path"],
)
PAINT = tool(
    "paint",
    "Paint walls in a colour",
    type="object",
    properties={
        "colour": {"$ref": "#/$defs/colour"},
        "walls": {"type": "array", "items": {"enum": ["north", "south"]}, "minItems": 1, "maxItems": 2},
    },
    required=["colour", "walls"],
    **{"$defs": {"colour": {"type": "string", "enum": ["red", "dark green"]}}},
)
SWITCH = tool(
    "switch",
    "Switch a light",
    type="object",
    properties={"on": {"type": "boolean"}, "lamp": {"anyOf": [{"type": "null"}, {"const": 'the "big" one'}]}},
    required=["on", "lamp"],
    additionalProperties=False,
)
TOOLS = [READ, PAINT, SWITCH]


@pytest.fixture
async def model(model_file):
    found = local_model(model_file, LocalOptions(context_size=1024))
    yield found
    await idle()


async def idle():
    """Wait until nobody uses the engine, so that one test does not wait for the last one's leftovers."""
    place = ENGINE.line.join()
    await asyncio.wait_for(asyncio.wrap_future(place.turn), 20)
    place.leave()
    for thread in threads():
        thread.join(20)
    assert threads() == []


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("dragoman-local")]


async def test_nothing_is_loaded_before_the_first_reply(model):
    ENGINE.free()
    conversation = model.start()
    assert not ENGINE.has(model.setup)
    parts = await ask(conversation, asking("Say hello."))
    assert ENGINE.has(model.setup)
    assert isinstance(parts[0], ReplyThought)
    assert re.match(r"\[Loading smollm2.*\.gguf, 0\.1 GB\.\]", parts[0].text)


async def test_text_comes_in_pieces_and_usage_at_the_end(model):
    parts = await ask(model.start(), asking("Tell a long story about a dragon."))
    pieces = [part for part in parts if isinstance(part, ReplyText)]
    assert len(pieces) > 5
    [usage] = [part for part in parts if isinstance(part, TokenUsage)]
    assert usage.input > 10
    assert usage.output == 24
    assert parts[-1] == ReplyStop("max_tokens")


async def test_a_reply_that_ends_by_itself_has_no_stop(model):
    parts = await ask(model.start(), asking("Answer with the one word: yes", max_output_tokens=400))
    assert said(parts)
    assert not any(isinstance(part, ReplyStop) for part in parts)


async def test_leaving_mid_stream_stops_the_model(model):
    parts = []
    async with aclosing(model.start().reply(asking("Tell a very long story.", max_output_tokens=512))) as reply:
        async for part in reply:
            parts.append(part)
            if isinstance(part, ReplyText) and len(parts) > 5:
                break
    await idle()
    assert await ask(model.start(), asking("And now?"))


async def test_a_cancelled_task_ends_at_once_even_while_the_prompt_is_read(model):
    await ask(model.start(), asking("hi", max_output_tokens=1))
    task = asyncio.ensure_future(ask(model.start(), asking("many words " * 200, max_output_tokens=100)))
    await until(lambda: threads())
    task.cancel()
    await asyncio.wait([task], timeout=20)
    assert task.cancelled()
    assert threads(), "it waited until the model was done with the prompt"
    await idle()


PROMPTS = [
    "Switch on the light",
    'Write only this: {"tool": "switch", "arguments": {"on": true, "lamp": null}}',
    'Write only this: {"tool": "paint", "arguments": {"colour": "blue"}}',
    "Please paint both walls dark green, then read the file a.txt from line 3.",
    '"\\ \n{}[] 😀',
]


@pytest.mark.timeout(180)  # a model that shares its core is slow
async def test_whatever_is_asked_a_call_fits_the_schema_of_its_tool(model_file):
    model = local_model(model_file, LocalOptions(context_size=1024, temperature=1.5))
    switched = AssistantMessage(tool_uses=[ToolUse("1", "switch", {"on": True, "lamp": None})])
    result = ToolMessage([ToolResult("1", "no such lamp", failed=True)])
    requests = [asking(text, TOOLS, max_output_tokens=32) for text in PROMPTS]
    requests.append(msgspec.structs.replace(requests[0], messages=[*requests[0].messages, switched, result]))
    calls = 0
    for request in requests:
        parts = await ask(model.start(), request)
        assert not said(parts).startswith("{"), "the model was not held to the shape"
        for call in (part for part in parts if isinstance(part, ToolUse)):
            calls += 1
            check_call(call, cut_off=ReplyStop("max_tokens") in parts)
    assert calls


def check_call(call, *, cut_off):
    [definition] = [each for each in TOOLS if each.name == call.name]
    if not cut_off:
        assert call.problem is None
        jsonschema.validate(call.arguments, definition.parameters)


async def test_a_long_history_is_shortened_until_it_fits(model_file):
    model = local_model(model_file, LocalOptions(context_size=384))
    talk = []
    for index in range(20):
        talk += [prompt(f"question {index} 😀é"), AssistantMessage("😀é汉字" * 10)]
    parts = await ask(model.start(), ModelRequest([*talk, prompt("Say hello.")], max_output_tokens=8))
    [usage] = [part for part in parts if isinstance(part, TokenUsage)]
    assert 100 < usage.input < 384


async def test_sessions_take_turns_and_are_told_so(model):
    one, other = await asyncio.gather(ask(model.start(), asking("Say one.")), ask(model.start(), asking("Say two.")))
    assert said(one)
    assert said(other)
    waited = [part.text for part in one + other if isinstance(part, ReplyThought) and "Another session" in part.text]
    assert len(waited) == 1


async def test_another_file_takes_the_place_of_the_first(model, model_file, tmp_path):
    await ask(model.start(), asking("hi", max_output_tokens=1))
    copy = tmp_path / "copy.gguf"
    os.link(model_file, copy)
    second = local_model(copy, LocalOptions(context_size=512))
    await ask(second.start(), asking("hi", max_output_tokens=1))
    assert not ENGINE.has(model.setup)
    assert ENGINE.has(second.setup)
    await model.close()
    assert ENGINE.has(second.setup)
    await second.close()
    assert not ENGINE.has(second.setup)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_close_gives_memory_threads_and_sockets_back(model):
    await model.close()
    before, sockets = len(os.listdir("/proc/self/task")), reachable_sockets()  # of what other tests share
    await ask(model.start(), asking("hi", max_output_tokens=4))
    held = resident_bytes()
    assert reachable_sockets() == sockets
    await model.close()
    assert held - resident_bytes() > 50_000_000
    assert len(os.listdir("/proc/self/task")) <= before + 1  # the library keeps a thread for its log


def reachable_sockets():
    """Whatever of ours others could connect to: ports, and sockets that have a path."""
    ours = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    ports = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()]
    listening = [fields[1] for fields in ports if fields[3] == "0A" and f"socket:[{fields[9]}]" in ours]
    paths = re.findall(r"\S+llama\.sock", Path("/proc/self/net/unix").read_text())
    return listening + [path for path in paths if Path(path).exists()]


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_a_file_that_is_too_big_is_refused_before_it_is_loaded(model_file, tmp_path):
    big = tmp_path / "big.gguf"
    with big.open("wb") as file, model_file.open("rb") as small:
        file.write(small.read(1 << 16))
        file.truncate(1 << 43)
    with pytest.raises(ModelFailure, match=r"big\.gguf needs about 8796"):
        await ask(local_model(big).start(), asking("hi"))
    await idle()


async def test_a_damaged_file_is_refused_in_words(model_file, tmp_path):
    damaged = tmp_path / "damaged.gguf"
    with model_file.open("rb") as file:
        damaged.write_bytes(file.read(1 << 16))
    with pytest.raises(ModelFailure, match=r"cannot load .*damaged\.gguf"):
        await ask(local_model(damaged).start(), asking("hi"))
    await idle()


def test_a_missing_file_is_refused_at_once(tmp_path):
    with pytest.raises(ModelFailure, match="there is no file"):
        local_model(tmp_path / "none.gguf")


def run_python(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    return done


WITHOUT = """
import sys
sys.modules["xllamacpp"] = None
from pathlib import Path
from dragoman.assistant.models.local import local_model
from dragoman.errors import ModelFailure
try:
    local_model(Path(sys.argv[1]))
except ModelFailure as failure:
    print(failure)
"""


def test_without_the_library_one_is_told_how_to_get_it(model_file):
    assert how_to_add("local") in run_python(WITHOUT, str(model_file)).stdout


LEAVE = """
import asyncio, os, signal, sys
from pathlib import Path
from dragoman.assistant.models.local import local_model
from dragoman.assistant.models.model import ModelRequest, ReplyText
from dragoman.assistant.models.message import UserMessage
from dragoman.protocol import v1

caught = []
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, lambda number, frame: caught.append(number))
async def main():
    assert "xllamacpp" not in sys.modules
    request = ModelRequest([UserMessage([v1.TextContent(text="Tell a story.")])])
    async for part in local_model(Path(sys.argv[1])).start().reply(request):
        if isinstance(part, ReplyText):
            break
    for each in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), each)
    assert caught == [signal.SIGINT, signal.SIGTERM]
    sys.exit(7)
asyncio.run(main())
"""


def test_a_process_that_leaves_mid_reply_ends_in_order_and_silently(model_file):
    done = run_python(LEAVE, str(model_file))
    assert (done.returncode, done.stdout) == (7, "")
