"""The program's declarations apply to its sessions: modes, options, commands, servers, hooks and content."""

import pytest

from dragoman.agent import AgentMcpServer, BooleanOption, Mode, PermissionDefaults, SelectOption, StdioServer
from dragoman.agent.sessions.directories import agent_home
from dragoman.client import accept
from dragoman.client.errors import RequestNotSentError
from dragoman.errors import RemoteError
from dragoman.protocol import v1
from tests.agent.connecting import make_agent, session_with
from tests.mcp.servers.commands import scripted

MODES = [Mode("ask", "Ask"), Mode("code", "Code", permission="edits"), Mode("look", "Look", permission="reads")]
OPTIONS = [SelectOption("tone", "Tone", ["short", "long"]), BooleanOption("jokes", "Jokes", default=True)]


async def show_settings(turn):
    await turn.say(f"{turn.session.mode} {turn.session.options['tone']} {turn.session.options['jokes']}")


async def test_modes_and_options_are_set_saved_and_restored(tmp_path):
    agent = make_agent(tmp_path, show_settings, modes=MODES, options=OPTIONS)
    async with session_with(agent, tmp_path) as session:
        assert (await session.run("x")).text == "ask short True"
        await session.set_mode("code")
        await session.set_config_option("tone", "long")
        assert (await session.run("x")).text == "code long True"
        with pytest.raises((RemoteError, RequestNotSentError)):
            await session.set_mode("nothing")
    async with agent.connect() as remote:
        again = await remote.resume_session(session.id, tmp_path)
        assert (await again.run("x")).text == "code long True"


async def test_logged_mode_that_is_no_longer_declared_becomes_the_default(tmp_path):
    async with session_with(make_agent(tmp_path, show_settings, modes=MODES, options=OPTIONS), tmp_path) as session:
        await session.set_mode("look")
        await session.run("x")
    async with make_agent(tmp_path, show_settings, modes=MODES[:2], options=OPTIONS).connect() as remote:
        again = await remote.load_session(session.id, tmp_path)
        assert (await again.run("x")).text == "ask short True"


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"modes": [Mode("a", "A"), Mode("a", "B")]}, "'a' is declared twice"),
        ({"options": [BooleanOption("mode", "Mode")]}, "'mode' is declared twice"),
        ({"options": [SelectOption("x", "X", [])]}, "'x' has no values"),
        ({"content_types": "image"}, r"content_types=\['image'\]"),
        ({"content_types": ["images"]}, "unknown type 'images'; expected image or audio"),
    ],
)
def test_invalid_declarations_are_refused_at_once(tmp_path, declared, words):
    with pytest.raises(ValueError, match=words):
        make_agent(tmp_path, **declared)


@pytest.mark.parametrize("content_types", ["image", ["images"]])
def test_result_of_a_content_types_function_is_checked(tmp_path, content_types):
    agent = make_agent(tmp_path, content_types=lambda: content_types)
    with pytest.raises(ValueError, match="expected"):
        agent.program.find_content_types()


def test_each_agent_name_has_its_own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    names = ["a b", "a_b", "a%20b", "a/b", ".a", "a", "..", ".", "", "agent", "a\u0300", "\u00e0"]
    homes = [agent_home(name) for name in names]
    assert len(set(homes)) == len(names)
    assert {home.parent for home in homes} == {tmp_path / "agents"}
    assert agent_home("my-agent_2.0").name == "my-agent_2.0"


@pytest.mark.parametrize(
    "declare",
    [lambda level: Mode("code", "Code", permission=level), lambda level: PermissionDefaults(level=level)],
)
def test_unknown_permission_level_is_refused(declare):
    expected = "'everything' is not a permission level; expected one of ask, edits, reads, all"
    with pytest.raises(ValueError, match=expected):
        declare("everything")


async def write(turn):
    async with turn.tool("Write a.txt", kind="edit", locations=["a.txt"]) as call:
        if await call.allowed():
            await turn.write_text("a.txt", "written")


@pytest.mark.parametrize(
    ("mode", "asked", "status"), [("ask", 1, "completed"), ("code", 0, "completed"), ("look", 0, "failed")]
)
async def test_mode_decides_whether_an_edit_asks(tmp_path, mode, asked, status):
    questions = []

    async def policy(question):
        questions.append(question)
        return True

    async with session_with(make_agent(tmp_path, write, modes=MODES), tmp_path, policy=policy) as session:
        await session.set_mode(mode)
        [call] = (await session.run("x")).tool_calls
    assert (len(questions), call.status) == (asked, status)
    assert (tmp_path / "a.txt").exists() == (status == "completed")


@pytest.mark.parametrize(("level", "asked"), [("ask", 1), ("edits", 0), ("all", 0)])
async def test_permission_level_applies_without_modes(tmp_path, level, asked):
    questions = []

    async def policy(question):
        questions.append(question)
        return False

    agent = make_agent(tmp_path, write, permission=PermissionDefaults(level=level))
    async with session_with(agent, tmp_path, policy=policy) as session:
        [call] = (await session.run("x")).tool_calls
    assert len(questions) == asked
    assert call.status == ("failed" if asked else "completed")
    if asked:
        assert call.content[-1].content.text.startswith("not allowed: permission was denied")


async def test_file_outside_the_session_is_neither_read_nor_written(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("secret")

    async def answer(turn):
        with pytest.raises(Exception, match="outside the session's directories"):
            await turn.read_text("../secret")
        with pytest.raises(Exception, match="outside"):
            await turn.write_text("../secret", "changed")
        await turn.say("kept out")

    async with session_with(make_agent(tmp_path, answer), inside) as session:
        assert (await session.run("x")).text == "kept out"
    assert (tmp_path / "secret").read_text() == "secret"


async def test_files_are_accessed_through_a_client_that_supports_it(tmp_path):
    async def answer(turn):
        fs = turn.session.client.capabilities.fs
        assert fs.read_text_file
        assert fs.write_text_file
        await turn.write_text("a.txt", "through the client")
        await turn.say(await turn.read_text("a.txt"))

    async with session_with(make_agent(tmp_path, answer), tmp_path, files="write") as session:
        assert (await session.run("x")).text == "through the client"


@pytest.mark.parametrize("terminals", [True, False])
async def test_command_runs_in_the_clients_terminal_or_ours(tmp_path, terminals):
    async def answer(turn):
        async with turn.tool("Run", kind="execute", raw_input={"command": "echo $((6*7))"}) as call:
            if await call.allowed():
                end = await turn.run("echo $((6*7)); exit 3", call=call)
                await turn.say(f"{end.output.strip()} {end.exit_code}")

    async with session_with(make_agent(tmp_path, answer), tmp_path, terminals=terminals) as session:
        assert (await session.run("x")).text == "42 3"


async def test_user_is_asked_with_a_form(tmp_path):
    async def answer(turn):
        await turn.say(str(await turn.ask_user("Which?", {"colour": {"type": "string"}})))

    async def elicit(form):
        return accept({"colour": "red"})

    async with session_with(make_agent(tmp_path, answer), tmp_path, elicit=elicit) as session:
        assert (await session.run("x")).text == "{'colour': 'red'}"
    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        assert (await session.run("x")).text == "None"


async def call_all(turn):
    for tool in await turn.mcp_tools():
        outcome = await turn.call_tool(tool, {"text": "hello"})
        await turn.say(f"{tool.name} of {tool.server}: {outcome.text}\n")


async def test_tools_of_client_and_agent_servers_can_be_called(tmp_path):
    command, *args = scripted()
    own = AgentMcpServer(StdioServer("own", command, args), permission="allow")
    given = v1.McpServerStdio(name="given", command=command, args=args, env=[])
    questions = []

    async def policy(question):
        questions.append(question.tool_call.title)
        return True

    agent = make_agent(tmp_path, call_all, mcp_servers=[own])
    async with session_with(agent, tmp_path, policy=policy, mcp_servers=[given]) as session:
        result = await session.run("x")
    assert result.text == "given__echo of given: hello\nown__echo of own: hello\n"
    assert [call.status for call in result.tool_calls] == ["completed", "completed"]
    assert questions == ["given: echo"]


async def test_denied_tool_call_returns_an_outcome_for_the_model(tmp_path):
    command, *args = scripted()
    given = v1.McpServerStdio(name="given", command=command, args=args, env=[])

    async def deny(question):
        return False

    agent = make_agent(tmp_path, call_all)
    async with session_with(agent, tmp_path, policy=deny, mcp_servers=[given]) as session:
        result = await session.run("x")
    assert result.text == "given__echo of given: not allowed: permission was denied\n"


async def test_prompt_of_a_server_is_a_command(tmp_path):
    command, *args = scripted(prompts=[{"name": "greet", "arguments": [{"name": "who"}], "text": "Greet {who}!"}])
    given = v1.McpServerStdio(name="given", command=command, args=args, env=[])

    async def answer(turn):
        await turn.say(f"{turn.command}: {turn.text}")

    async with session_with(make_agent(tmp_path, answer), tmp_path, mcp_servers=[given]) as session:
        assert (await session.run("/given:greet Ada")).text == "given:greet: Greet Ada!"


async def test_model_request_of_a_server_needs_the_users_consent(tmp_path):
    message = {"role": "user", "content": {"type": "text", "text": "What is 6*7?"}}
    command, *args = scripted(sample={"messages": [message], "maxTokens": 10})
    given = v1.McpServerStdio(name="given", command=command, args=args, env=[])
    agent = make_agent(tmp_path, call_all)

    @agent.on_sample
    async def sample(turn, params):
        return {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "none"}

    async with session_with(agent, tmp_path, mcp_servers=[given]) as session:
        result = await session.run("x")
    assert "42" in result.text
    assert [call.title for call in result.tool_calls] == ["given: echo", "given asks the model"]
    assert {call.status for call in result.tool_calls} == {"completed"}


async def test_hooks_are_called_when_sessions_open_and_close(tmp_path):
    heard = []
    agent = make_agent(tmp_path, show_settings, modes=MODES, options=OPTIONS)

    @agent.on_session
    async def begin(session, origin):
        heard.append((origin, session.cwd))

    @agent.on_close
    async def end(session):
        heard.append(("close", session.cwd))

    place = str(tmp_path)
    async with session_with(agent, tmp_path) as session:
        await session.run("x")
        await session.fork()
        await session.close()
    async with agent.connect() as remote:
        await remote.load_session(session.id, tmp_path)
    expected = ["new", "fork", "close", "close", "load", "close"]
    assert heard == [(origin, place) for origin in expected]


async def test_hook_that_raises_refuses_the_session(tmp_path):
    agent = make_agent(tmp_path, show_settings)

    @agent.on_session
    async def begin(session, origin):
        raise PermissionError("not in this folder")

    with pytest.raises(RemoteError, match="PermissionError: not in this folder"):
        async with session_with(agent, tmp_path):
            pass


async def test_unsupported_content_is_refused_before_a_turn(tmp_path):
    async with make_agent(tmp_path, show_settings).connect() as remote:
        assert not remote.capabilities.prompt_capabilities.image
    async with make_agent(tmp_path, show_settings, content_types=["image"]).connect() as remote:
        assert remote.capabilities.prompt_capabilities.image


async def test_commands_are_the_programs_and_help_and_mcp(tmp_path):
    agent = make_agent(tmp_path, show_settings)

    @agent.command("double", "Doubles a number", hint="NUMBER")
    async def double(turn):
        yield str(2 * int(turn.arguments))

    async with session_with(agent, tmp_path) as session:
        assert (await session.run("/double 21")).text == "42"
        helped = (await session.run("/help")).text
        assert "- `/double NUMBER`: Doubles a number" in helped
        assert (await session.run("/mcp")).text.startswith("There are no MCP servers")
        assert (await session.run("/nothing")).text == "There is no command `/nothing`; `/help` lists them."


async def test_usage_title_and_plan_reach_the_client(tmp_path):
    async def answer(turn):
        await turn.usage(input_tokens=5, output_tokens=3)
        await turn.usage(input_tokens=1, output_tokens=1, thought_tokens=1)
        await turn.title("A title")
        await turn.plan(["one"])

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        result = await session.run("x")
        assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.thought_tokens) == (6, 4, 1)
        async with session.prompt("/help") as turn:
            async for _ in turn:
                pass
    async with make_agent(tmp_path, answer).connect() as remote:
        [info] = [each async for each in remote.list_sessions()]
    assert info.title == "A title"


async def test_server_of_the_program_is_listed_as_the_agents(tmp_path):
    command, *args = scripted()
    own = AgentMcpServer(StdioServer("own", command, tuple(args)), permission="deny")

    async def answer(turn):
        [tool] = await turn.mcp_tools()
        await turn.say((await turn.call_tool(tool, {"text": "hello"})).text)

    async with session_with(make_agent(tmp_path, answer, mcp_servers=[own]), tmp_path) as session:
        said = [(await session.run(words)).text for words in ("x", "/mcp", "/mcp remove own")]
    assert said[0] == "not allowed: the agent's settings do not allow it; do not try again"
    assert "| own | agent | ready |" in said[1]
    assert said[2].endswith("own belongs to the agent; its program declares it, so change the program to remove it")
    assert not any("agent file" in each or "dragoman mcp" in each for each in said)


async def test_extension_request_is_answered_and_announced(tmp_path):
    agent = make_agent(tmp_path, show_settings)
    agent.declare_meta("example/count", {"method": "_example/count"})

    @agent.on_extension("_example/count")
    async def count(params):
        return {"count": len(params["words"])}

    async with agent.connect() as remote:
        assert remote.capabilities.meta["example/count"] == {"method": "_example/count"}
        assert await remote.call_extension("_example/count", {"words": ["a", "b"]}) == {"count": 2}
        with pytest.raises(RemoteError, match="Method not found"):
            await remote.call_extension("_example/other", {})
        with pytest.raises(RequestNotSentError, match="begin with"):
            await remote.call_extension("example/count", {})
    with pytest.raises(ValueError, match="begins with `_`"):
        agent.on_extension("example/count")
