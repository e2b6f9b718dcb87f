"""Files that run or instruct by themselves are asked about in every mode but yolo."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from dragoman.agent.prepared_call import Action
from dragoman.agent.workspace.active_files import ACTIVE_FILES, ActiveFiles
from tests.assistant.running import answer_with, session_in
from tests.assistant.test_permission import set_mode
from tests.assistant.tools.working import working

DOCUMENT = Path(__file__).parents[2] / "docs" / "tools.md"


def write(path, content="x"):
    return (
        f"- - tool: {{name: write_file, arguments: {json.dumps({'path': path, 'content': content})}}}\n- - text: done\n"
    )


async def questions(cwd, path, mode="code", **options):
    """Write a file in a mode, and return the questions that were asked."""
    async with session_in(cwd, write(str(path)), decide=lambda _: "allow", **options) as (client, session_id):
        await set_mode(client, session_id, mode)
        await client.prompt(session_id, "go")
        return client.permissions


@pytest.mark.parametrize(
    "path",
    [
        *(".git/config", ".git/hooks/pre-commit", ".git/info/attributes", "sub/.git/config", "sub/.git", ".GIT/config"),
        *(".git/modules/sub/config", ".git/worktrees/w/gitdir", ".gitmodules", "deep/in/it/.git/hooks/post-checkout"),
        *(
            ".vscode/tasks.json",
            ".vscode/settings.json",
            ".vscode/launch.json",
            "x.code-workspace",
            ".VSCode/tasks.json",
        ),
        *(".idea/runConfigurations/run.xml", ".zed/tasks.json", ".devcontainer/devcontainer.json", ".nvim.lua"),
        *(".envrc", "sub/.envrc", ".bashrc", ".bash_profile", ".zshenv", ".profile", ".config/fish/config.fish"),
        *("AGENTS.md", "agents.md", "sub/AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/settings.json", ".mcp.json"),
        *("dragoman.yaml", "Dragoman.YAML", "tsagent.json", ".dragoman/trusted.json", ".cursor/mcp.json"),
        *(".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", ".husky/pre-commit", ".pre-commit-config.yaml"),
        *(
            ".npmrc",
            ".cargo/config.toml",
            "lib/evil.pth",
            "sitecustomize.py",
            ".ssh/config",
            "AGENTS.md.",
            ".g\u200cit/config",
        ),
        *("src/../.git/config", "./.git//config", "bare/HEAD"),
    ],
)
async def test_they_are_asked_about_in_the_mode_code(path, tmp_path):
    (tmp_path / "src").mkdir()
    [request] = await questions(tmp_path, path)
    assert [option.kind for option in request.options][:2] == ["allow_once", "allow_always"]


@pytest.mark.parametrize(
    "path",
    [
        *(
            "notes.txt",
            "Makefile",
            "package.json",
            "conftest.py",
            "src/git.py",
            ".gitignore",
            ".gitattributes",
            "git/config",
        ),
        *(
            "docs/agents/AGENTS.txt",
            "my-AGENTS.md",
            "github/workflows/ci.yml",
            ".envrc.example",
            "vscode/tasks.json",
            ".env",
        ),
    ],
)
async def test_other_files_are_not(path, tmp_path):
    assert await questions(tmp_path, path) == []


async def test_nothing_is_asked_in_the_mode_yolo(tmp_path):
    (tmp_path / ".home").mkdir()
    (tmp_path / ".home" / "dragoman.yaml").write_text("permissions: {allow_yolo: true}\n")
    assert await questions(tmp_path, ".git/config", "yolo") == []


async def test_an_edit_is_asked_about_like_a_write(tmp_path):
    (tmp_path / "AGENTS.md").write_text("be kind")
    edit = (
        "- - tool: {name: edit_file, arguments: {path: AGENTS.md, edits: [{old: kind, new: quick}]}}\n- - text: done\n"
    )
    async with session_in(tmp_path, edit, decide=lambda _: "reject") as (client, session_id):
        await set_mode(client, session_id, "code")
        await client.prompt(session_id, "go")
        assert len(client.permissions) == 1
    assert (tmp_path / "AGENTS.md").read_text() == "be kind"


async def test_always_holds_for_that_path_alone(tmp_path):
    for path, asked_before in ((".envrc", False), (".envrc", True), ("sub/.envrc", False), ("AGENTS.md", False)):
        async with session_in(tmp_path, write(path)) as (client, session_id):
            await set_mode(client, session_id, "code")
            asked = answer_with(client, "allow_always", remember="project")
            await client.prompt(session_id, "go")
            assert len(asked) == (not asked_before)


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("notes.txt", ".git/config", "notes.txt"),
        ("docs", ".github", "docs/workflows/ci.yml"),
        (".vscode", "editor", ".vscode/tasks.json"),
        (".vscode", "editor", "editor/tasks.json"),
        ("AGENTS.md", "docs/guide.md", "docs/guide.md"),
        ("AGENTS.md", "docs/guide.md", "AGENTS.md"),
    ],
)
async def test_links_do_not_hide_them(link, target, path, tmp_path):
    (tmp_path / target).parent.mkdir(exist_ok=True)
    if "." not in Path(target).name[1:] and "config" not in target:
        (tmp_path / target).mkdir()
    (tmp_path / link).symlink_to(tmp_path / target)
    assert len(await questions(tmp_path, path)) == 1


async def test_directories_of_git_are_known_by_what_they_hold(tmp_path):
    cwd, apart = tmp_path / "cwd", tmp_path / "cwd" / "store"
    for command in (
        ["git", "init", "-q", "--separate-git-dir", apart, cwd],
        ["git", "init", "-q", "--bare", cwd / "bare"],
        ["git", "-C", cwd, "-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "x", "--allow-empty"],
        ["git", "-C", cwd, "worktree", "add", "-q", cwd / "tree"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    async with working(cwd) as here:
        for path in (
            *("store/config", "store/hooks/pre-commit", "bare/config", "bare/hooks/update", ".git", "tree/.git"),
            *("store/worktrees/tree/config.worktree",),
        ):
            assert (await here.workspace.find(path)).active, path
        assert not (await here.workspace.find("tree/config")).active


async def test_the_directories_beside_the_cwd_count_too(tmp_path):
    for name in ("cwd", "other", ".github"):
        (tmp_path / name).mkdir()
    async with working(tmp_path / "cwd", tmp_path / "other", tmp_path / ".github") as here:
        for path in ("../other/.git/config", "../.github/workflows/ci.yml"):
            call = await here.prepare("write_file", path=str(tmp_path / "cwd" / path), content="x")
            assert call.always_asks
            assert call.action == Action("write", os.path.normpath(tmp_path / "cwd" / path))
        assert not (await here.prepare("write_file", path=f"{tmp_path}/other/x", content="x")).always_asks


async def test_the_names_above_the_session_do_not_count(tmp_path):
    cwd = tmp_path / ".cursor" / "worktrees" / "project"
    cwd.mkdir(parents=True)
    async with working(cwd) as here:
        assert not (await here.prepare("write_file", path="x.py", content="x")).always_asks


async def test_dragomans_own_home_and_a_named_agent_file_are_asked_about(tmp_path):
    (tmp_path / "mine.yaml").write_text("")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "home")
    files = ActiveFiles(str(tmp_path / "elsewhere"), str(tmp_path / "mine.yaml"))
    roots = [str(tmp_path)]
    for name, active in (
        ("home/permissions/x.json", True),
        ("mine.yaml", True),
        ("home2/x", False),
        ("yours.yaml", False),
    ):
        path = str(tmp_path / name)
        assert files.includes(path, path, roots) == active
    [request] = await questions(tmp_path, ".home/permissions/x.json")
    assert request.tool_call.title == "Write .home/permissions/x.json"


async def test_a_file_that_becomes_one_after_the_question_is_asked_about(tmp_path):
    """A directory becomes Git's between the look and the write."""
    async with working(tmp_path) as here:
        (tmp_path / "store").mkdir()
        before = await here.workspace.find("store/config")
        (tmp_path / "store" / "objects").mkdir()
        (tmp_path / "store" / "HEAD").write_text("ref: refs/heads/main\n")
        assert not before.active
        assert await here.workspace.find("store/config") != before


def test_all_of_them_are_documented():
    section = DOCUMENT.read_text().partition("### Files that act by themselves")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`([^`]+)`", section))
    assert {pattern for patterns in ACTIVE_FILES.values() for pattern in patterns} <= documented
