"""Sessions in evaluation formats: ATIF and chat completions."""

import json
from pathlib import Path

import jsonschema
import pytest

from dragoman.client import (
    connect,
    group_by_session,
    read_sessions,
    read_trajectory,
    to_atif,
    to_openai,
)
from dragoman.client.policies import allow_all
from dragoman.protocol import v1
from tests.client.driving import END, agent_of, chunk
from tests.commands import DRAGOMAN, dragoman, raw

SCHEMA = json.loads((Path(__file__).parent / "atif.schema.json").read_text())
PNG = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}
USAGE = {"totalTokens": 30, "inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 15}


def check_atif(document):
    """Check a document against the schema and the rules that a schema cannot express."""
    jsonschema.validate(document, SCHEMA)
    assert [step["step_id"] for step in document["steps"]] == list(range(1, len(document["steps"]) + 1))
    for step in document["steps"]:
        calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        assert {result["source_call_id"] for result in step.get("observation", {"results": []})["results"]} == calls
    assert json.loads(json.dumps(document)) == document
    return document


def thought(text):
    return {"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}}


def called(number, **more):
    return {"update": {"sessionUpdate": "tool_call", "toolCallId": number, "title": f"Call {number}", **more}}


def went_on(number, **more):
    return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": number, **more}}


def text_of(text):
    return [{"type": "content", "content": {"type": "text", "text": text}}]


async def record(path, *turns, prompts=("go",), capabilities=None, **options):
    async with agent_of(raw({}, *turns, capabilities=capabilities), record=path, **options) as agent:
        session = await agent.new_session("/")
        for prompt in prompts:
            await session.run(prompt)
    return read_sessions(path)


async def test_a_turn_becomes_steps_with_calls_and_their_results(tmp_path):
    [session] = await record(
        tmp_path / "t.jsonl",
        [
            thought("Hm. "),
            chunk("Let me "),
            chunk("look."),
            called("1", name="read_file", kind="read", rawInput={"path": "a"}),
            called("2", kind="execute", rawInput="ls"),
            went_on("1", status="completed", content=text_of("file")),
            went_on("2", status="failed", rawOutput={"code": 1}),
            chunk("Done."),
            {"result": {"stopReason": "end_turn", "usage": USAGE}},
        ],
    )
    document = check_atif(to_atif(session))
    user, first, last = document["steps"]
    assert (user["source"], user["message"]) == ("user", "go")
    assert (first["message"], first["reasoning_content"]) == ("Let me look.", "Hm. ")
    assert [(call["function_name"], call["arguments"]) for call in first["tool_calls"]] == [
        ("read_file", {"path": "a"}),
        ("execute", {"input": "ls"}),
    ]
    assert [(each["content"], each["extra"]["status"]) for each in first["observation"]["results"]] == [
        ("file", "completed"),
        ('{"code":1}', "failed"),
    ]
    assert (last["message"], last["extra"]) == ("Done.", {"stop_reason": "end_turn"})
    assert last["metrics"] == {"prompt_tokens": 25, "completion_tokens": 5, "cached_tokens": 15}
    assert document["final_metrics"]["total_prompt_tokens"] == 25
    assert to_openai(session) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}},
                {"id": "2", "type": "function", "function": {"name": "execute", "arguments": '{"input":"ls"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "file"},
        {"role": "tool", "tool_call_id": "2", "content": '{"code":1}'},
        {"role": "assistant", "content": "Done."},
    ]


async def test_failed_and_empty_turns_are_exported(tmp_path):
    failed = [chunk("half"), {"error": {"code": -32603, "message": "out of luck"}}]
    [session] = await record(tmp_path / "t.jsonl", failed, [END], prompts=("one", "two"))
    document = check_atif(to_atif(session))
    assert [(step["source"], step["message"]) for step in document["steps"]] == [
        ("user", "one"),
        ("agent", "half"),
        ("system", "The turn failed: out of luck"),
        ("user", "two"),
        ("agent", ""),
    ]
    assert [message["role"] for message in to_openai(session)] == ["user", "assistant", "user"]


async def test_images_and_diffs_are_exported(tmp_path):
    diff = {"type": "diff", "path": "/a", "oldText": "1\n", "newText": "2\n"}
    [session] = await record(
        tmp_path / "t.jsonl",
        [
            called("1", status="completed", content=[diff]),
            called("2", status="completed", content=[{"type": "content", "content": PNG}]),
            END,
        ],
        prompts=([v1.TextContent(text="see"), v1.ImageContent(data=PNG["data"], mime_type="image/png")],),
        capabilities={"promptCapabilities": {"image": True}},
    )
    document = check_atif(to_atif(session))
    shown, picture = [each["content"] for each in document["steps"][1]["observation"]["results"]]
    assert shown == "--- /a\n+++ /a\n@@ -1 +1 @@\n-1\n+2\n"
    source = {"media_type": "image/png", "path": f"data:image/png;base64,{PNG['data']}"}
    assert picture == [{"type": "image", "source": source}]
    assert document["steps"][0]["message"][1] == {"type": "image", "source": source}
    assert to_openai(session)[0]["content"][1] == {"type": "image_url", "image_url": {"url": source["path"]}}


async def test_withdrawn_message_is_not_exported(tmp_path):
    def said(text, message_id, **more):
        content = {"type": "text", "text": text}
        return {"update": {"sessionUpdate": "agent_message_chunk", "content": content, "messageId": message_id, **more}}

    void = said("", "1", _meta={"dragoman/void": True})
    [session] = await record(tmp_path / "t.jsonl", [said("Wrong.", "1"), void, said("Right.", "2"), END])
    assert [message["content"] for message in to_openai(session)] == ["go", "Right."]


async def test_each_recorded_session_is_one_trajectory(tmp_path):
    replies = [{"text": "Hello."}], [{"text": "Hello again."}]
    (tmp_path / "script.yaml").write_text(json.dumps(replies))
    command = [*DRAGOMAN, "agent", "--model", f"script:{tmp_path}/script.yaml"]
    async with connect(command, record=tmp_path / "t.jsonl") as agent:
        first, second = await agent.new_session(tmp_path), await agent.new_session(tmp_path)
        await first.ask("one")
        await second.ask("two")
        await first.ask("three")
        ids = [first.id, second.id]
    sessions = group_by_session(read_trajectory(tmp_path / "t.jsonl"))
    assert [(each.session_id, each.cwd, each.agent) for each in sessions] == [
        (each, str(tmp_path), "dragoman") for each in ids
    ]
    assert [message["content"] for message in to_openai(sessions[0]) if message["role"] == "user"] == ["one", "three"]


async def test_session_without_steps_has_no_trajectory(tmp_path):
    [session] = await record(tmp_path / "t.jsonl", prompts=())
    with pytest.raises(ValueError, match="no step"):
        to_atif(session)


@pytest.fixture
async def project(tmp_path, monkeypatch):
    """A directory with a recorded session of our agent and its session log."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    (tmp_path / "a.txt").write_text("content\n")
    read = {"name": "read_file", "arguments": {"path": "a.txt"}}
    (tmp_path / "script.yaml").write_text(json.dumps([[{"thought": "Hm."}, {"tool": read}], [{"text": "Done."}]]))
    command = [*DRAGOMAN, "agent", "--model", f"script:{tmp_path}/script.yaml"]
    async with connect(command, record=tmp_path / "t.jsonl", policy=allow_all()) as agent:
        session = await agent.new_session(tmp_path)
        assert (await session.run("Read a.txt")).text == "Done."
    return tmp_path, session.id


def test_session_and_recording_export_alike(project):
    path, session_id = project
    messages = {}
    for source in (session_id, str(path / "t.jsonl")):
        for kind in ("atif", "openai"):
            done = dragoman("sessions", "export", source, "--format", kind, "--cwd", str(path))
            assert done.returncode == 0, done.stderr
            messages[source, kind] = json.loads(done.stdout)
    saved, recorded = messages[session_id, "openai"], messages[str(path / "t.jsonl"), "openai"]
    assert saved == recorded
    assert [message["role"] for message in saved] == ["user", "assistant", "tool", "assistant"]
    assert saved[1]["tool_calls"][0]["function"]["name"] == "read_file"
    assert "content" in saved[2]["content"]
    for source in (session_id, str(path / "t.jsonl")):
        document = check_atif(messages[source, "atif"])
        assert [step["source"] for step in document["steps"]] == ["user", "agent", "agent"]
        assert document["steps"][1]["reasoning_content"] == "Hm."


def test_file_that_is_not_a_recording_is_refused(tmp_path):
    (tmp_path / "x").write_text("no recording\n")
    done = dragoman("sessions", "export", str(tmp_path / "x"), "--format", "atif")
    assert done.returncode == 1
    assert "cannot be read" in done.stderr
    wrong = dragoman("sessions", "show", "x", "--format", "atif")
    assert wrong.returncode == 2
    assert "--format atif needs export" in wrong.stderr
