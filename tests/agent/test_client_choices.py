"""The client's choices about a session: its title, archiving and system prompt."""

import asyncio
import json

import pytest

from dragoman.agent import Agent, Turn
from dragoman.client.errors import MissingCapabilityError
from dragoman.client.events import TurnFinished
from dragoman.errors import ErrorCode, RemoteError
from dragoman.protocol import v1
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.agent.connecting import make_agent


def titling_agent(tmp_path, **options) -> Agent:
    agent = make_agent(tmp_path, **options)

    @agent.on_prompt
    async def answer(turn: Turn) -> None:
        await turn.title(f"About {turn.text}")
        await turn.say("Done.")

    @agent.command("name", "Name the session")
    async def name(turn: Turn) -> None:
        await turn.title(turn.arguments)

    return agent


async def titles(remote, **options):
    return {info.session_id: info.title async for info in remote.list_sessions(**options)}


async def archived(remote, which="include"):
    return {info.session_id: info.archived async for info in remote.list_sessions(archived=which)}


# ── the title ───────────────────────────────────────────────────────────────────────────────────────


async def test_clients_title_is_not_replaced_by_the_program(tmp_path):
    agent = titling_agent(tmp_path)
    async with agent.connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.ask("one")
        assert session.title == "About one"
        assert await session.set_title("  My\n own   title ") == "My own title"
        await session.ask("two")
        assert session.title == "My own title"
        await session.ask("/name By command")
        assert session.title == "By command"


async def test_clients_title_survives_a_restart_and_a_fork(tmp_path):
    async with titling_agent(tmp_path).connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.ask("one")
        await session.set_title("Mine")
    async with titling_agent(tmp_path).connect() as remote:
        assert await titles(remote) == {session.id: "Mine"}
        again = await remote.load_session(session.id, tmp_path)
        assert again.title == "Mine"
        await again.ask("two")
        copy = await again.fork()
        await copy.ask("three")
        assert await titles(remote) == {session.id: "Mine", copy.id: "Mine"}


async def test_stored_session_can_be_given_a_title(tmp_path):
    async with titling_agent(tmp_path).connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.ask("one")
        await session.close()
        assert await remote.set_title(session.id, "Later") == "Later"
        assert await remote.status(session.id) == "saved"
        assert await titles(remote) == {session.id: "Later"}
        again = await remote.load_session(session.id, tmp_path)
        await again.ask("two")
        assert again.title == "Later"


async def test_session_with_a_title_is_listed_before_its_first_prompt(tmp_path):
    async with titling_agent(tmp_path).connect() as remote:
        session = await remote.new_session(tmp_path)
        assert await titles(remote) == {}
        await session.set_title("Plans")
        assert await titles(remote) == {session.id: "Plans"}
    (tmp_path / "home" / "index.db").unlink()
    async with titling_agent(tmp_path).connect() as remote:
        assert await titles(remote) == {session.id: "Plans"}


@pytest.mark.parametrize("title", ["", "   ", "\n\t" * 900])
async def test_an_empty_title_is_refused(tmp_path, title):
    async with titling_agent(tmp_path).connect() as remote:
        session = await remote.new_session(tmp_path)
        with pytest.raises(RemoteError) as refusal:
            await session.set_title(title)
        assert refusal.value.code == ErrorCode.INVALID_PARAMS
        assert "title" in str(refusal.value)


async def test_long_title_is_cut(tmp_path):
    async with titling_agent(tmp_path).connect() as remote:
        session = await remote.new_session(tmp_path)
        kept = await session.set_title("long " * 100)
        assert len(kept) == 200
        assert kept.endswith("…")


# ── archiving ───────────────────────────────────────────────────────────────────────────────────────


async def test_archived_session_is_closed_and_hidden_from_lists(tmp_path):
    async with titling_agent(tmp_path).connect() as remote:
        kept, put_away = [await remote.new_session(tmp_path) for _ in range(2)]
        for session in (kept, put_away):
            await session.ask("hello")
        assert await put_away.status() == "open"
        await put_away.archive()
        assert await remote.status(put_away.id) == "saved"
        assert await archived(remote, "exclude") == {kept.id: False}
        assert await archived(remote, "only") == {put_away.id: True}
        assert await archived(remote) == {kept.id: False, put_away.id: True}
        await remote.archive(put_away.id)
        await remote.unarchive(put_away.id)
        await remote.unarchive(put_away.id)
        assert await archived(remote, "exclude") == {kept.id: False, put_away.id: False}
        assert await remote.status(put_away.id) == "saved"


async def test_archiving_ends_the_running_turn(tmp_path):
    agent = make_agent(tmp_path)

    @agent.on_prompt
    async def answer(turn: Turn) -> None:
        await turn.say("I begin.")
        await asyncio.Event().wait()

    async with agent.connect() as remote:
        session = await remote.new_session(tmp_path)
        events = []
        async for event in session.prompt("go"):
            events.append(event)
            if len(events) == 2:  # the title, and the text
                archiving = asyncio.create_task(session.archive())
        await archiving
        assert isinstance(events[-1], TurnFinished)
        assert events[-1].stop_reason == "cancelled"


async def test_archived_state_survives_a_restart_but_not_a_fork(tmp_path):
    async with titling_agent(tmp_path).connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.ask("one")
        await session.archive()
    (tmp_path / "home" / "index.db").unlink()
    async with titling_agent(tmp_path).connect() as remote:
        assert await archived(remote) == {session.id: True}
        again = await remote.load_session(session.id, tmp_path)
        await again.ask("two")
        assert await archived(remote) == {session.id: True}
        copy = await again.fork()
        await copy.ask("three")
        assert await archived(remote) == {session.id: True, copy.id: False}
    (tmp_path / "home" / "index.db").unlink()
    async with titling_agent(tmp_path).connect() as remote:
        assert await archived(remote) == {session.id: True, copy.id: False}
        again = await remote.resume_session(session.id, tmp_path)
        await remote.unarchive(session.id)
        assert await archived(remote) == {session.id: False, copy.id: False}


@pytest.mark.parametrize("call", ["archive", "unarchive", "status"])
async def test_missing_session_is_not_found(tmp_path, call):
    async with titling_agent(tmp_path).connect() as remote:
        with pytest.raises(RemoteError) as refusal:
            await getattr(remote, call)("6f4dd7a5-9b8f-4b7e-8d1c-0f6f7c1f2a3b")
        assert refusal.value.code == ErrorCode.RESOURCE_NOT_FOUND
        assert refusal.value.data["sessionId"] == "6f4dd7a5-9b8f-4b7e-8d1c-0f6f7c1f2a3b"


async def test_an_unknown_filter_is_refused(tmp_path):
    async with titling_agent(tmp_path).connect() as remote:
        with pytest.raises(RemoteError) as refusal:
            await archived(remote, "some")
        assert refusal.value.code == ErrorCode.INVALID_PARAMS
        assert "exclude, include, only" in str(refusal.value)


# ── the system prompt ───────────────────────────────────────────────────────────────────────────────


def instructed_agent(tmp_path, **options) -> Agent:
    agent = make_agent(tmp_path, **options)

    @agent.on_prompt
    async def answer(turn: Turn) -> None:
        await turn.say(turn.session.instructions("Be brief."))

    return agent


def replacing(*texts):
    return v1.SystemPrompt(mode="override", content=[v1.TextContent(text=text) for text in texts])


async def test_clients_instructions_extend_or_replace_the_programs(tmp_path):
    async with instructed_agent(tmp_path, system_prompt="override").connect() as remote:
        plain = await remote.new_session(tmp_path)
        added = await remote.new_session(tmp_path, system_prompt="Speak French.")
        replaced = await remote.new_session(tmp_path, system_prompt=replacing("Speak", "German."))
        assert await plain.ask("?") == "Be brief."
        assert await added.ask("?") == "Be brief.\n\nSpeak French."
        assert await replaced.ask("?") == "Speak\n\nGerman."


async def test_instructions_are_kept_until_new_ones_arrive(tmp_path):
    options = {"system_prompt": "append"}
    async with instructed_agent(tmp_path, **options).connect() as remote:
        session = await remote.new_session(tmp_path, system_prompt="Speak French.")
        await session.ask("?")
    async with instructed_agent(tmp_path, **options).connect() as remote:
        again = await remote.resume_session(session.id, tmp_path)
        assert await again.ask("?") == "Be brief.\n\nSpeak French."
        again = await remote.load_session(session.id, tmp_path, system_prompt="Speak Czech.")
        assert await again.ask("?") == "Be brief.\n\nSpeak Czech."
        copy = await remote.fork(session.id, tmp_path, system_prompt="Speak Danish.")
        assert await copy.ask("?") == "Be brief.\n\nSpeak Danish."
    async with instructed_agent(tmp_path, **options).connect() as remote:
        again = await remote.resume_session(session.id, tmp_path)
        assert await again.ask("?") == "Be brief.\n\nSpeak Czech."


async def test_session_with_only_instructions_counts_as_never_prompted(tmp_path):
    async with instructed_agent(tmp_path, system_prompt="append").connect() as remote:
        await remote.new_session(tmp_path, system_prompt="Speak French.")
        assert await titles(remote) == {}


async def test_client_refuses_instructions_that_the_agent_does_not_accept(tmp_path):
    async with instructed_agent(tmp_path).connect() as remote:
        with pytest.raises(MissingCapabilityError, match="systemPrompt"):
            await remote.new_session(tmp_path, system_prompt="Speak French.")
    async with instructed_agent(tmp_path, system_prompt="append").connect() as remote:
        with pytest.raises(MissingCapabilityError, match="override"):
            await remote.new_session(tmp_path, system_prompt=replacing("Speak French."))


TEXT = [{"type": "text", "text": "Speak French."}]
IMAGE = [{"type": "image", "data": "", "mimeType": "image/png"}]


@pytest.mark.parametrize(
    ("taken", "given", "path"),
    [
        (None, {"mode": "append", "content": TEXT}, "params.systemPrompt"),
        ("append", {"mode": "override", "content": TEXT}, "params.systemPrompt.mode"),
        ("override", {"mode": "_shout", "content": TEXT}, "params.systemPrompt.mode"),
        ("override", {"mode": "append", "content": []}, "params.systemPrompt.content"),
        ("override", {"mode": "append", "content": IMAGE}, "params.systemPrompt.content[0].type"),
    ],
)
async def test_agent_refuses_instructions_that_it_cannot_follow(tmp_path, taken, given, path):
    near, far = memory_pair()
    serving = asyncio.create_task(instructed_agent(tmp_path, system_prompt=taken).serve(far))
    async with ScriptedClient(near) as client:
        await client.initialize()
        request = {"cwd": str(tmp_path), "mcpServers": [], "systemPrompt": given}
        with pytest.raises(RemoteError) as refusal:
            await client.connection.call_extension("session/new", request)
    await serving
    assert refusal.value.code == ErrorCode.INVALID_PARAMS
    assert refusal.value.data["path"] == path, json.dumps(refusal.value.data)
