"""`turn.run` in the sandbox."""

import pytest

from tests.agent.connecting import make_agent, session_with


async def test_command_in_the_sandbox_changes_only_the_sessions_directories(sandboxed, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "cache").mkdir()

    async def answer(turn):
        command = "touch inside ../outside; touch ../cache/file .envrc"
        result = await turn.run(command, sandbox="workspace", writable=[str(tmp_path / "cache")])
        await turn.say(f"{result.exit_code} {[new.rpartition('/')[2] for _, new in result.renamed]}")

    async with session_with(make_agent(tmp_path / "home", answer), tmp_path / "work") as session:
        assert (await session.run("x")).text == "0 ['blocked-.envrc.new']"
    assert [(tmp_path / name).exists() for name in ("work/inside", "cache/file", "outside")] == [True, True, False]


async def test_unknown_sandbox_is_refused(tmp_path):
    async def answer(turn):
        with pytest.raises(ValueError, match="'docker' is not a sandbox; expected one of off, workspace"):
            await turn.run("true", sandbox="docker")
        await turn.say("refused")

    async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
        assert (await session.run("x")).text == "refused"


async def test_command_is_not_run_without_a_sandbox(tmp_path):
    """A session in / cannot be protected."""

    async def answer(turn):
        try:
            await turn.run(f"touch {tmp_path}/made", sandbox="workspace")
        except Exception as error:  # noqa: BLE001 -- its text is the answer
            await turn.say(f"{type(error).__name__}: {error}")

    async with session_with(make_agent(tmp_path, answer), "/") as session:
        assert (await session.run("x")).text.startswith("ToolError: the command was not run, because ")
    assert not (tmp_path / "made").exists()
