"""What runs, what asks, what is refused, and what the user's answer applies to."""

import asyncio
import json

import pytest

from dragoman.agent.sessions.approvals import ApprovalFile, Approvals
from dragoman.agent.turns.prepared_call import Action
from dragoman.assistant.models.message import ToolMessage, ToolUse
from dragoman.assistant.models.model import ReplyText, ToolStart
from dragoman.assistant.models.script import ScriptModel
from dragoman.protocol import v1
from tests.assistant.running import answer_with, session_in, set_mode

WRITE = "- - tool: {name: write_file, arguments: {path: notes.txt, content: milk}}\n- - text: done\n"
COMMAND = "- - tool: {name: run_command, arguments: {command: echo hi > made.txt}}\n- - text: done\n"
READ = "- - tool: {name: read_file, arguments: {path: notes.txt}}\n- - text: done\n"


def calls(client):
    """Return the merged updates of tool calls by id."""
    merged = {}
    for update in client.conversation():
        if isinstance(update, v1.ToolCall | v1.ToolCallProgress):
            fields = {name: value for name in update.__struct_fields__ if (value := getattr(update, name)) is not None}
            merged.setdefault(update.tool_call_id, {}).update(fields)
    return list(merged.values())


def write_agent_file(directory, text):
    home = directory / ".home"
    home.mkdir(exist_ok=True)
    (home / "dragoman.yaml").write_text(text)


async def test_write_asks_with_its_diff_and_runs_if_allowed(tmp_path):
    async with session_in(tmp_path, WRITE, decide=lambda _: "allow") as (client, session_id):
        await client.prompt(session_id, "go")
        [request] = client.permissions
        [diff] = request.tool_call.content
        assert (diff.path, diff.old_text, diff.new_text) == (str(tmp_path / "notes.txt"), None, "milk")
        assert [(option.option_id, option.kind) for option in request.options] == [
            ("allow_once", "allow_once"),
            ("allow_always", "allow_always"),
            ("reject_once", "reject_once"),
            ("reject_always", "reject_always"),
        ]
        [call] = calls(client)
        assert (call["status"], call["kind"], call["raw_input"]["path"]) == ("completed", "edit", "notes.txt")
        assert call["tool_call_id"] == request.tool_call.tool_call_id
    assert (tmp_path / "notes.txt").read_text() == "milk"


async def test_denial_changes_nothing_and_the_turn_continues(tmp_path):
    async with session_in(tmp_path, WRITE, decide=lambda _: "reject") as (client, session_id):
        assert (await client.prompt(session_id, "go")).stop_reason == "end_turn"
        [call] = calls(client)
        assert call["status"] == "failed"
        assert "denied" in call["content"][0].content.text
        assert client.text() == "done"
    assert not (tmp_path / "notes.txt").exists()


async def test_reads_run_without_asking(tmp_path):
    (tmp_path / "notes.txt").write_text("eggs")
    async with session_in(tmp_path, READ) as (client, session_id):
        await client.prompt(session_id, "go")
        assert client.permissions == []
        [call] = calls(client)
        assert call["status"] == "completed"


@pytest.mark.parametrize(
    ("mode", "script", "asked", "happened"),
    [
        ("ask", WRITE, 1, "notes.txt"),
        ("ask", COMMAND, 1, "made.txt"),
        ("code", WRITE, 0, "notes.txt"),
        ("code", COMMAND, 1, "made.txt"),
        ("plan", WRITE, 0, None),
        ("plan", COMMAND, 0, None),
    ],
)
async def test_mode_decides_what_asks(mode, script, asked, happened, tmp_path):
    async with session_in(tmp_path, script, decide=lambda _: "allow") as (client, session_id):
        await set_mode(client, session_id, mode)
        await client.prompt(session_id, "go")
        assert len(client.permissions) == asked
        [call] = calls(client)
        assert call["status"] == ("completed" if happened else "failed")
    assert {path.name for path in tmp_path.iterdir()} - {".home"} == ({happened} if happened else set())


async def test_yolo_must_be_enabled_in_the_agent_file(tmp_path):
    async with session_in(tmp_path, COMMAND) as (client, session_id):
        with pytest.raises(Exception, match="there is no mode 'yolo'"):
            await set_mode(client, session_id, "yolo")
    write_agent_file(tmp_path, "permissions: {allow_yolo: true}\n")
    async with session_in(tmp_path, COMMAND) as (client, session_id):
        await set_mode(client, session_id, "yolo")
        await client.prompt(session_id, "go")
        assert client.permissions == []
    assert (tmp_path / "made.txt").exists()


async def test_mode_can_change_while_a_question_is_open(tmp_path):
    async with session_in(tmp_path, COMMAND, decide=lambda _: "wait") as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "go"))
        await client.wait_for(lambda c: bool(c.permissions))
        await set_mode(client, session_id, "plan")
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"


@pytest.mark.parametrize(
    ("option_id", "questions", "made"),
    [
        ("allow_once", 2, True),
        ("allow_always", 1, True),
        ("reject_once", 2, False),
        ("reject_always", 1, False),
        ("nonsense", 2, False),
    ],
)
async def test_answer_is_remembered_for_its_scope(option_id, questions, made, tmp_path):
    async with session_in(tmp_path, COMMAND) as (client, session_id):
        asked = answer_with(client, option_id)
        for _ in range(2):
            await client.prompt(session_id, "go")
        assert len(asked) == questions
    assert (tmp_path / "made.txt").exists() == made


@pytest.mark.parametrize(
    ("setting", "chosen", "questions_in_the_next_session"),
    [
        (None, None, 1),
        ("session", None, 1),
        ("project", None, 0),
        (None, "project", 0),
        ("project", "session", 1),
        ("session", "for ever", 1),
        ("project", ["session"], 0),
    ],
)
async def test_always_lasts_as_named_or_as_the_answer_chooses(setting, chosen, questions_in_the_next_session, tmp_path):
    write_agent_file(tmp_path, f"permissions: {{remember: {setting}}}\n" if setting else "")
    async with session_in(tmp_path, COMMAND) as (client, session_id):
        asked = answer_with(client, "allow_always", remember=chosen)
        for _ in range(2):
            await client.prompt(session_id, "go")
        [request] = asked
        again = answer_with(client, "reject_once")
        await client.prompt(await client.new_session(str(tmp_path)), "go")
        assert len(again) == questions_in_the_next_session
    [always] = [option for option in request.options if option.kind == "allow_always"]
    assert ("in this project" in always.name) == (setting == "project")
    assert ("in this session" in always.name) == (setting != "project")


async def test_always_lists_its_own_scope_first(tmp_path):
    async with session_in(tmp_path, COMMAND, decide=lambda _: "reject") as (client, session_id):
        await client.prompt(session_id, "go")
        [request] = client.permissions
    [always] = [option for option in request.options if option.kind == "allow_always"]
    assert always.meta == {
        "dragoman/remember": [
            {"scope": "session", "name": "Allow exactly this command in this session"},
            {"scope": "project", "name": "Always allow exactly this command in this project"},
        ]
    }
    assert always.name == "Allow exactly this command in this session"


async def test_always_for_an_edit_names_the_file_and_covers_other_edits(tmp_path):
    (tmp_path / "src").mkdir()
    edits = [("src/k.txt", "one"), ("src/k.txt", "two"), ("src/other.txt", "three")]
    script = "".join(
        f"- - tool: {{name: write_file, arguments: {{path: {path}, content: {text}}}}}\n" for path, text in edits
    )
    async with session_in(tmp_path, f"{script}- - text: done\n") as (client, session_id):
        asked = answer_with(client, "allow_always")
        await client.prompt(session_id, "go")
    names = [{option.kind: option.name for option in request.options} for request in asked]
    assert [each["allow_always"] for each in names] == [
        "Allow edits to src/k.txt in this session",
        "Allow edits to src/other.txt in this session",
    ]
    assert names[0]["reject_always"] == "Always reject edits to src/k.txt in this project"
    assert (tmp_path / "src" / "k.txt").read_text() == "two"


async def test_permanent_rejection_holds_in_the_project_and_says_so(tmp_path):
    async with session_in(tmp_path, COMMAND) as (client, session_id):
        asked = answer_with(client, "reject_always")
        await client.prompt(session_id, "go")
        await client.prompt(await client.new_session(str(tmp_path)), "go")
        [request] = asked
    assert request.options[-1].name == "Always reject exactly this command in this project"


async def test_always_holds_in_the_next_process_for_exactly_this_action(tmp_path):
    write_agent_file(tmp_path, "permissions: {remember: project}\n")
    async with session_in(tmp_path, COMMAND) as (client, session_id):
        answer_with(client, "allow_always")
        await client.prompt(session_id, "go")
    [file] = (tmp_path / ".home" / "permissions").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    [approval] = json.loads(file.read_text())
    assert approval["action"]["what"] == "echo hi > made.txt"
    other = COMMAND.replace("echo hi", "echo ho")
    for script, questions in ((COMMAND, 0), (other, 1)):
        async with session_in(tmp_path, script) as (client, session_id):
            asked = answer_with(client, "reject_once")
            await client.prompt(session_id, "go")
            assert len(asked) == questions


def approvals_in(home, cwd):
    return Approvals(ApprovalFile(home, cwd))


async def test_approval_applies_only_to_the_exact_text(tmp_path):
    approvals = approvals_in(tmp_path, "/work")
    action = Action("command", "make test", "/work")
    await approvals.keep_for_project(action, "allow")
    assert await approvals_in(tmp_path, "/work").find(action) == "allow"
    for other in (
        Action("command", "make test ", "/work"),
        Action("command", "make", "/work"),
        Action("command", "make test; rm -rf /", "/work"),
        Action("command", "make test", "/work/sub"),
        Action("tool", "make test", "/work"),
    ):
        assert await approvals_in(tmp_path, "/work").find(other) is None
    assert await approvals_in(tmp_path, "/elsewhere").find(action) is None


async def test_damaged_approvals_file_approves_nothing(tmp_path):
    approvals = approvals_in(tmp_path, "/work")
    action = Action("command", "make test", "/work")
    await approvals.keep_for_project(action, "allow")
    [file] = (tmp_path / "permissions").glob("*.json")
    file.write_text(file.read_text()[:-5])
    assert await approvals_in(tmp_path, "/work").find(action) is None


RUN = Action("command", "make test", "/srv")


async def test_damaged_approvals_file_is_not_overwritten(tmp_path):
    await approvals_in(tmp_path, "/srv").keep_for_project(RUN, "reject")
    [file] = (tmp_path / "permissions").glob("*.json")
    file.write_text(torn := file.read_text()[:-5])
    approvals = approvals_in(tmp_path, "/srv")
    await approvals.keep_for_project(RUN, "reject")
    assert file.read_text() == torn
    assert await approvals.find(RUN) == "reject"


async def test_approvals_writable_by_others_approve_nothing(tmp_path):
    await approvals_in(tmp_path, "/srv").keep_for_project(RUN, "allow")
    [file] = (tmp_path / "permissions").glob("*.json")
    file.chmod(0o666)
    assert await approvals_in(tmp_path, "/srv").find(RUN) is None


async def test_unsaved_decision_holds_in_the_session(tmp_path):
    (tmp_path / "permissions").write_text("in the way")
    approvals = approvals_in(tmp_path, "/srv")
    await approvals.keep_for_project(RUN, "reject")
    assert await approvals.find(RUN) == "reject"


async def test_parallel_decisions_are_all_stored(tmp_path):
    actions = [Action("command", f"make {number}", "/srv") for number in range(40)]
    await asyncio.gather(*(approvals_in(tmp_path, "/srv").keep_for_project(action, "reject") for action in actions))
    assert [await approvals_in(tmp_path, "/srv").find(action) for action in actions] == ["reject"] * 40


RUN_SCRIPT = "- - tool: {name: run_command, arguments: {command: 'timeout 5 sh run.sh'}}\n- - text: done\n"
UNCLEAR = "- - tool: {name: run_command, arguments: {command: 'cat run.sh | sh'}}\n- - text: done\n"


async def test_always_ends_when_a_named_file_is_rewritten(tmp_path):
    (tmp_path / "run.sh").write_text("echo one >> out")
    async with session_in(tmp_path, RUN_SCRIPT) as (client, session_id):
        asked = answer_with(client, "allow_always", remember="project")
        for _ in range(2):
            await client.prompt(session_id, "go")
        assert len(asked) == 1
    (tmp_path / "run.sh").write_text("echo two >> out")
    async with session_in(tmp_path, RUN_SCRIPT) as (client, session_id):
        asked = answer_with(client, "reject_once")
        await client.prompt(session_id, "go")
        assert len(asked) == 1
    assert (tmp_path / "out").read_text() == "one\none\n"


async def test_always_is_not_offered_for_an_unclear_command(tmp_path):
    (tmp_path / "run.sh").write_text("echo one >> out")
    async with session_in(tmp_path, UNCLEAR, decide=lambda _: "allow") as (client, session_id):
        for _ in range(2):
            await client.prompt(session_id, "go")
        assert [[option.kind for option in each.options] for each in client.permissions] == [
            ["allow_once", "reject_once", "reject_always"]
        ] * 2
    assert (tmp_path / "out").read_text() == "one\none\n"


async def test_always_is_refused_if_it_was_not_offered(tmp_path):
    (tmp_path / "run.sh").write_text("echo one >> out")
    async with session_in(tmp_path, UNCLEAR) as (client, session_id):
        asked = answer_with(client, "allow_always", remember="project")
        for _ in range(2):
            await client.prompt(session_id, "go")
        assert len(asked) == 2
    assert not (tmp_path / "out").exists()


async def test_never_holds_for_an_unclear_command_with_any_files(tmp_path):
    (tmp_path / "run.sh").write_text("echo one >> out")
    async with session_in(tmp_path, UNCLEAR) as (client, session_id):
        asked = answer_with(client, "reject_always")
        await client.prompt(session_id, "go")
        (tmp_path / "run.sh").write_text("echo two >> out")
        await client.prompt(session_id, "go")
        assert len(asked) == 1


@pytest.mark.parametrize("script", [RUN_SCRIPT, UNCLEAR])
async def test_approval_stored_without_file_hashes_approves_nothing(script, tmp_path):
    (tmp_path / "run.sh").write_text("echo one >> out")
    command = script.split("'")[1]
    approvals = approvals_in(tmp_path / ".home", str(tmp_path))
    await approvals.keep_for_project(Action("command", command, str(tmp_path)), "allow")
    async with session_in(tmp_path, script) as (client, session_id):
        asked = answer_with(client, "reject_once")
        await client.prompt(session_id, "go")
        assert len(asked) == 1
    assert not (tmp_path / "out").exists()


async def test_file_changed_since_the_question_asks_again(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("old")
    seen = []

    def decide(request):
        seen.append(request.tool_call.content[0].old_text)
        if len(seen) == 1:
            notes.write_text("changed meanwhile")
        return "allow"

    async with session_in(tmp_path, WRITE, decide=decide) as (client, session_id):
        await client.prompt(session_id, "go")
        statuses = [update.status for update in client.conversation() if isinstance(update, v1.ToolCallProgress)]
        assert statuses == [None, "in_progress", "completed"], "the status went from in_progress back to a question"
    assert seen == ["old", "changed meanwhile"]
    assert notes.read_text() == "milk"


async def test_cancel_during_a_question_ends_the_call_and_the_turn(tmp_path):
    async with session_in(tmp_path, WRITE, decide=lambda _: "wait") as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "go"))
        await client.wait_for(lambda c: bool(c.permissions))
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"
        assert [call["status"] for call in calls(client)] == ["failed"]
        assert (await client.prompt(session_id, "again")).stop_reason == "end_turn"
    assert not (tmp_path / "notes.txt").exists()


async def test_cancel_during_a_command_ends_it_and_the_turn(tmp_path):
    script = (
        "- - tool: {name: run_command, arguments: {command: 'echo begun; sleep 600; touch done.txt'}}\n- - text: a\n"
    )
    async with session_in(tmp_path, script, decide=lambda _: "allow") as (client, session_id):
        turn = asyncio.ensure_future(client.prompt(session_id, "go"))
        await client.wait_for(lambda c: r"\nbegun" in str(calls(c)))
        await client.cancel(session_id)
        assert (await turn).stop_reason == "cancelled"
        [call] = calls(client)
        output, reason = (each.content.text for each in call["content"])
        assert (call["status"], output, reason) == ("failed", "```\nbegun\n```", "cancelled")
        assert call["raw_output"] == {"error": "cancelled"}


async def test_first_update_of_a_call_has_its_title_and_all_known_facts(tmp_path):
    (tmp_path / "notes.txt").write_text("milk")
    async with session_in(tmp_path, READ) as (client, session_id):
        await client.prompt(session_id, "go")
        first, *later = [each for each in client.conversation() if isinstance(each, v1.ToolCall | v1.ToolCallProgress)]
        assert first == v1.ToolCall(
            tool_call_id=first.tool_call_id,
            title="Read notes.txt",
            name="read_file",
            kind="read",
            status="pending",
            locations=[v1.ToolCallLocation(path=str(tmp_path / "notes.txt"))],
            raw_input={"path": "notes.txt"},
        )
        assert [each.status for each in later] == ["in_progress", "completed"]
        assert later[-1].raw_output == {"output": "milk"}


class LongArguments(ScriptModel):
    """Announces a call before requesting it, as models do with long arguments."""

    def __init__(self, use):
        super().__init__("long", [])
        self._use = use

    def start(self):
        return self

    async def reply(self, request):
        if isinstance(request.messages[-1], ToolMessage):
            yield ReplyText("done")
        else:
            yield ToolStart(self._use.id, self._use.name)
            yield self._use


async def test_call_announced_before_its_arguments_has_a_title(tmp_path):
    model = LongArguments(ToolUse("c1", "write_file", {"path": "a.txt", "content": "x" * 1000}))
    async with session_in(tmp_path, model=model, decide=lambda _: "allow") as (client, session_id):
        await client.prompt(session_id, "go")
        first, second, *_ = [
            each for each in client.conversation() if isinstance(each, v1.ToolCall | v1.ToolCallProgress)
        ]
        assert (first.title, first.kind, first.status, first.raw_input) == ("Write a file", "edit", "pending", None)
        assert (second.title, second.status, second.raw_input["path"]) == ("Write a.txt", None, "a.txt")
    assert (tmp_path / "a.txt").read_text() == "x" * 1000


async def test_unprepared_call_is_announced_and_fails(tmp_path):
    script = "- - tool: {name: read_file, arguments: {}}\n- - text: done\n"
    async with session_in(tmp_path, script) as (client, session_id):
        await client.prompt(session_id, "go")
        [call] = calls(client)
        assert (call["title"], call["status"]) == ("Read a file", "failed")
        assert call["raw_output"]["error"].startswith("the arguments of read_file do not fit")


async def test_results_keep_their_order_and_reach_the_model(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text(name)
    reads = "\n".join(f"  - tool: {{name: read_file, arguments: {{path: {name}}}}}" for name in ("one", "two", "three"))
    async with session_in(tmp_path, f"- - thought: all\n{reads}\n- - text: done\n") as (client, session_id):
        await client.prompt(session_id, "go")
        assert [call["title"] for call in calls(client)] == ["Read one", "Read two", "Read three"]
    [log] = (tmp_path / ".home").glob("projects/*/*.jsonl")
    [results] = [
        record["model"]["results"]
        for record in map(json.loads, log.read_text().splitlines())
        if record.get("model", {}).get("role") == "tool"
    ]
    assert [name in result["text"] for name, result in zip(("one", "two", "three"), results, strict=True)] == [True] * 3


async def test_users_decision_is_in_the_log(tmp_path):
    async with session_in(tmp_path, WRITE, decide=lambda _: "allow") as (client, session_id):
        await client.prompt(session_id, "go")
    [log] = (tmp_path / ".home").glob("projects/*/*.jsonl")
    [decision] = [
        record["permission"] for record in map(json.loads, log.read_text().splitlines()) if "permission" in record
    ]
    assert (decision["optionId"], decision["allowed"]) == ("allow_once", True)
    assert decision["action"]["what"] == str(tmp_path / "notes.txt")
    assert "remember" not in decision


async def test_scope_of_a_decision_is_in_the_log(tmp_path):
    async with session_in(tmp_path, WRITE) as (client, session_id):
        answer_with(client, "allow_always", remember="project")
        await client.prompt(session_id, "go")
    [log] = (tmp_path / ".home").glob("projects/*/*.jsonl")
    [decision] = [
        record["permission"] for record in map(json.loads, log.read_text().splitlines()) if "permission" in record
    ]
    assert (decision["optionId"], decision["remember"]) == ("allow_always", "project")
