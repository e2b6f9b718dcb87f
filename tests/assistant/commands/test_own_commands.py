"""Slash commands, compaction, and a project's agent file."""

import json
import re

import msgspec
import pytest

from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.models.message import SummaryMessage, UserMessage
from dragoman.assistant.models.model import ReplyText
from dragoman.errors import ContextOverflowError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_PROMPT, SESSION_REQUEST_PERMISSION
from tests.assistant.running import running_agent, session_in


class Forgetful:
    """A model with a small context that repeats what it was sent."""

    name = "forgetful"
    context_size = 1000
    content_types = frozenset()
    thought_levels = ("low", "high")
    summarises = True

    def __init__(self, *, overflow_at=1_000_000, used=10):
        self.requests = []
        self._overflow_at = overflow_at
        self._used = used

    def start(self):
        return self

    async def close(self):
        pass

    async def reply(self, request):
        self.requests.append(msgspec.structs.replace(request, messages=list(request.messages)))
        if request.tools and len(request.messages) >= self._overflow_at:
            raise ContextOverflowError("too long")
        yield ReplyText("summary" if not request.tools else "reply")
        yield TokenUsage(self._used, 1, 0.5)


async def test_commands_are_offered_after_the_session_is_announced(tmp_path):
    async with session_in(tmp_path) as (client, session_id):
        await client.wait_for(lambda c: bool(c.updates))
        [notification] = client.updates
        assert notification.session_id == session_id
        names = [command.name for command in notification.update.available_commands]
        assert names == ["help", "compact", "mode", "model", "usage", "context", "include", "exclude", "skills", "mcp"]


async def test_help_lists_commands_without_asking_the_model(tmp_path):
    model = Forgetful()
    async with session_in(tmp_path, model=model) as (client, session_id):
        assert (await client.prompt(session_id, "/help")).stop_reason == "end_turn"
        assert "- `/mode ask|code|plan`: Show or change the mode" in client.text()
    assert model.requests == []


@pytest.mark.parametrize("text", ["/unknown thing", "/etc/passwd is a file", "see /help", "/ help"])
async def test_unknown_command_goes_to_the_model(text, tmp_path):
    model = Forgetful()
    async with session_in(tmp_path, model=model) as (client, session_id):
        await client.prompt(session_id, text)
        assert client.text() == "reply"
    assert len(model.requests) == 1


async def test_mode_command_shows_and_changes_the_mode(tmp_path):
    async with session_in(tmp_path) as (client, session_id):
        await client.prompt(session_id, "/mode")
        assert "**ask**" in client.text()
        await client.prompt(session_id, "/mode plan")
        modes = [update for update in client.conversation() if isinstance(update, v1.CurrentModeUpdate)]
        assert modes[-1].current_mode_id == "plan"
        client.updates.clear()
        await client.prompt(session_id, "/mode fast")
        assert client.text() == "there is no mode 'fast'; expected one of ask, code, plan"


async def test_model_command_changes_the_session_model(tmp_path):
    async with session_in(tmp_path, model=Forgetful()) as (client, session_id):
        await client.prompt(session_id, "/model guide")
        client.updates.clear()
        await client.prompt(session_id, "hello")
        assert "guide" in client.text()
        client.updates.clear()
        await client.prompt(session_id, "/model nonsense")
        assert "there is no model 'nonsense'" in client.text()


async def test_model_can_be_chosen_as_an_option(tmp_path):
    async with session_in(tmp_path, model=Forgetful()) as (client, session_id):
        params = {"sessionId": session_id, "configId": "model", "value": "guide"}
        answer = await client.connection.call_extension("session/set_config_option", params)
        by_id = {option["id"]: option for option in answer["configOptions"]}
        assert by_id["model"]["currentValue"] == "guide"
        assert [value["value"] for value in by_id["model"]["options"]] == ["forgetful", "guide"]
        assert "thought_level" not in by_id


async def test_thought_level_is_an_option_if_the_model_has_levels(tmp_path):
    model = Forgetful()
    async with session_in(tmp_path, model=model) as (client, session_id):
        params = {"sessionId": session_id, "configId": "thought_level", "value": "high"}
        await client.connection.call_extension("session/set_config_option", params)
        await client.prompt(session_id, "hi")
    assert model.requests[-1].thought_level == "high"


async def test_usage_shows_tokens_and_cost_even_after_a_load(tmp_path):
    async with session_in(tmp_path, model=Forgetful()) as (client, session_id):
        await client.prompt(session_id, "one")
        await client.prompt(session_id, "two")
        client.updates.clear()
        await client.prompt(session_id, "/usage")
        assert client.text().startswith("20 tokens in, 2 out, $1.0000. The context holds 11 of 1,000 tokens (1 %)")
    async with running_agent(tmp_path / ".home", model=Forgetful()) as client:
        await client.initialize()
        params = {"sessionId": session_id, "cwd": str(tmp_path)}
        await client.connection.call_extension("session/resume", params)
        await client.prompt(session_id, "/usage")
        assert client.text().startswith("20 tokens in, 2 out, $1.0000.")


async def test_compact_summarizes_and_the_log_keeps_everything(tmp_path):
    model = Forgetful()
    async with session_in(tmp_path, model=model) as (client, session_id):
        await client.prompt(session_id, "first words")
        await client.prompt(session_id, "/compact")
        await client.prompt(session_id, "next")
    assert model.requests[-1].messages[0] == SummaryMessage("summary")
    [log] = (tmp_path / ".home").glob("projects/*/*.jsonl")
    assert "first words" in log.read_text()
    async with running_agent(tmp_path / ".home", model=model) as client:
        await client.initialize()
        await client.connection.call_extension("session/resume", {"sessionId": session_id, "cwd": str(tmp_path)})
        await client.prompt(session_id, "after a restart")
    assert model.requests[-1].messages[0] == SummaryMessage("summary")


async def test_overflowing_conversation_is_summarized_with_a_notice_and_continues(tmp_path):
    model = Forgetful(overflow_at=5)
    async with session_in(tmp_path, model=model) as (client, session_id):
        for text in ("one", "two", "three"):
            assert (await client.prompt(session_id, text)).stop_reason == "end_turn"
        assert client.text() == "replyreplyreply"
        [notice] = client.notices()
        assert re.fullmatch(r"The conversation so far, \d+ messages, was summarized to make room\.", notice)
    summary, prompt = model.requests[-1].messages
    assert summary == SummaryMessage("summary", [v1.TextContent(text="three")])
    assert prompt == UserMessage([v1.TextContent(text="three")])


LINK = v1.ResourceLink(name="a.py", uri="file:///srv/a.py")


@pytest.mark.parametrize(
    "blocks",
    [
        [LINK, v1.TextContent(text="/help")],
        [v1.TextContent(text="/help"), LINK],
        [v1.TextContent(text="<task>/help</task>")],
    ],
    ids=["file first", "file last", "element"],
)
async def test_command_is_found_next_to_files_and_inside_editor_markup(blocks, tmp_path):
    model = Forgetful()
    async with session_in(tmp_path, model=model) as (client, session_id):
        await client.connection.call(SESSION_PROMPT, v1.PromptRequest(session_id=session_id, prompt=blocks))
        assert "- `/help`: List the commands" in client.text()
    assert model.requests == []


async def test_title_is_the_text_the_user_typed(tmp_path):
    async with session_in(tmp_path, model=Forgetful()) as (client, session_id):
        blocks = [LINK, v1.TextContent(text="<task>mend the  parser</task>")]
        await client.connection.call(SESSION_PROMPT, v1.PromptRequest(session_id=session_id, prompt=blocks))
        [info] = [update for update in client.conversation() if isinstance(update, v1.SessionInfoUpdate)]
        assert info.title == "mend the parser"


# ── the agent file ──────────────────────────────────────────────────────────────────────────────────


async def test_agent_file_of_the_home_is_used(tmp_path):
    home = tmp_path / ".home"
    home.mkdir()
    (home / "dragoman.yaml").write_text("instructions: Speak like a pirate.\npermissions: {mode: plan}\n")
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    model = Forgetful()
    async with session_in(tmp_path, model=model) as (client, session_id):
        await client.prompt(session_id, "hi")
    instructions = model.requests[0].instructions
    assert "You are dragoman" in instructions
    assert "Speak like a pirate." in instructions
    assert "Use tabs." in instructions


PROJECT_FILE = "permissions: {mode: code}\ninstructions: Be brief.\n"


@pytest.mark.parametrize(("decision", "used"), [("allow", True), ("reject", False), ("cancel", False)])
async def test_project_agent_file_needs_the_users_approval(decision, used, tmp_path):
    (tmp_path / "dragoman.yaml").write_text(PROJECT_FILE)
    model = Forgetful()
    async with session_in(tmp_path, model=model, decide=lambda _: decision) as (client, session_id):
        await client.prompt(session_id, "hi")
        [request] = client.permissions
        assert request.tool_call.title == f"Use {tmp_path / 'dragoman.yaml'}"
        assert "Be brief." in request.tool_call.content[0].content.text
        await client.prompt(session_id, "again")
        assert len(client.permissions) == 1
    assert ("Be brief." in model.requests[-1].instructions) == used


async def test_approval_lasts_until_the_file_changes(tmp_path):
    (tmp_path / "dragoman.yaml").write_text(PROJECT_FILE)

    async def questions():
        async with session_in(tmp_path, model=Forgetful()) as (client, session_id):
            asked = []

            async def always(params):
                asked.append(params)
                return v1.RequestPermissionResponse(outcome=v1.SelectedPermissionOutcome(option_id="allow_always"))

            client.routes.on_request(SESSION_REQUEST_PERMISSION, always)
            await client.prompt(session_id, "hi")
            return len(asked)

    assert [await questions(), await questions()] == [1, 0]
    (tmp_path / "dragoman.yaml").write_text(PROJECT_FILE + "# changed\n")
    assert await questions() == 1


async def test_invalid_project_file_is_ignored_with_a_notice(tmp_path):
    (tmp_path / "dragoman.yaml").write_text("modle: x\n")
    async with session_in(tmp_path, model=Forgetful()) as (client, session_id):
        await client.prompt(session_id, "hi")
        [notice] = client.notices()
        assert notice.startswith("The agent file of this project is ignored, because it is not valid\n")
        assert "did you mean model?" in notice
    [log] = (tmp_path / ".home").glob("projects/*/*.jsonl")
    assert not any("modle" in json.dumps(record) for record in map(json.loads, log.read_text().splitlines()))
