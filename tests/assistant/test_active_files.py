"""Files that are executed or instruct the agent are asked about in every mode except yolo."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from dragoman.agent.turns.prepared_call import Action
from dragoman.sandbox.active_files import ACTIVE_FILES, ActiveFiles
from tests.assistant.running import answer_with, session_in
from tests.assistant.test_permission import set_mode
from tests.assistant.tools.working import working
from tests.table import each_row

DOCUMENT = Path(__file__).parents[2] / "docs" / "permissions.md"


def write(path, content="x"):
    return (
        f"- - tool: {{name: write_file, arguments: {json.dumps({'path': path, 'content': content})}}}\n- - text: done\n"
    )


async def questions(cwd, path, mode="code", **options):
    """Write a file in a mode and return the questions."""
    async with session_in(cwd, write(str(path)), decide=lambda _: "allow", **options) as (client, session_id):
        await set_mode(client, session_id, mode)
        await client.prompt(session_id, "go")
        return client.permissions


@each_row(
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
        *(
            ".venv/bin/python",
            "sub/.venv/bin/activate",
            "venv/bin/pytest",
            "node_modules/.bin/tsc",
            "rust-toolchain.toml",
            ".Rprofile",
            ".irbrc",
            ".pryrc",
            ".ghci",
        ),
        *(".gdbinit", ".mvn/jvm.config", ".bundle/config", "eslint.config.mjs", "eslint.config.ts"),
        *("WARP.md", ".junie/guidelines.md", "crush.json", ".amp/settings.json"),
    ],
)
async def test_code_mode_asks_about_active_files(path, tmp_path):
    (tmp_path / "src").mkdir()
    [request] = await questions(tmp_path, path)
    assert [option.kind for option in request.options][:2] == ["allow_once", "allow_always"]


@each_row(
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
async def test_code_mode_does_not_ask_about_other_files(path, tmp_path):
    assert await questions(tmp_path, path) == []


async def test_yolo_mode_asks_nothing(tmp_path):
    (tmp_path / ".home").mkdir()
    (tmp_path / ".home" / "dragoman.yaml").write_text("permissions: {allow_yolo: true}\n")
    assert await questions(tmp_path, ".git/config", "yolo") == []


async def test_edit_asks_like_a_write(tmp_path):
    (tmp_path / "AGENTS.md").write_text("be kind")
    edit = (
        "- - tool: {name: edit_file, arguments: {path: AGENTS.md, edits: [{old: kind, new: quick}]}}\n- - text: done\n"
    )
    async with session_in(tmp_path, edit, decide=lambda _: "reject") as (client, session_id):
        await set_mode(client, session_id, "code")
        await client.prompt(session_id, "go")
        assert len(client.permissions) == 1
    assert (tmp_path / "AGENTS.md").read_text() == "be kind"


async def test_always_applies_only_to_that_path(tmp_path):
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
async def test_links_do_not_hide_active_files(link, target, path, tmp_path):
    (tmp_path / target).parent.mkdir(exist_ok=True)
    if "." not in Path(target).name[1:] and "config" not in target:
        (tmp_path / target).mkdir()
    (tmp_path / link).symlink_to(tmp_path / target)
    assert len(await questions(tmp_path, path)) == 1


async def test_git_directories_are_recognized_by_their_content(tmp_path):
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


async def test_files_included_by_git_config_are_active(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for path in ("../team.gitconfig", str(tmp_path / "sub/other.txt")):
        subprocess.run(["git", "-C", tmp_path, "config", "--add", "include.path", path], check=True)
    subprocess.run(["git", "-C", tmp_path, "config", "includeIf.onbranch:main.path", "../third"], check=True)
    (tmp_path / "team.gitconfig").write_text("[include] path = nested\n")
    (tmp_path / "sub").mkdir()
    async with working(tmp_path) as here:
        for path in ("team.gitconfig", "sub/other.txt", "third", "nested"):
            assert (await here.workspace.find(path)).active, path
        assert not (await here.workspace.find("fourth")).active


@pytest.mark.parametrize(
    "value", ['"../team #1.txt"', '../team "#"1.txt', '"../\\"team #1.txt" # ours', '../te\\\nam "#1.txt"']
)
async def test_include_path_is_read_as_git_reads_it(tmp_path, value):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    with (tmp_path / ".git" / "config").open("a") as config:
        config.write(f'[includeIf "gitdir:/[x]/"]\n\tpath = {value}\n')
    shown = subprocess.run(["git", "config", "-l", "--local"], cwd=tmp_path, check=True, capture_output=True, text=True)
    async with working(tmp_path) as here:
        assert (await here.workspace.find(shown.stdout.splitlines()[-1].partition("=../")[2])).active


async def test_git_includes_apply_in_subdirectories_and_worktrees(tmp_path):
    repository, tree = tmp_path / "repository", tmp_path / "tree"
    git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", repository], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", tree], check=True)
    (repository / "sub").mkdir()
    for path in (repository / "sub" / "team", tree / "team"):
        subprocess.run([*git, "config", "--add", "include.path", path], check=True)
    for cwd in (repository / "sub", tree):
        async with working(cwd) as here:
            assert (await here.workspace.find("team")).active, cwd
            assert not (await here.workspace.find("other")).active, cwd


async def test_additional_directories_are_checked(tmp_path):
    for name in ("cwd", "other", ".github"):
        (tmp_path / name).mkdir()
    async with working(tmp_path / "cwd", tmp_path / "other", tmp_path / ".github") as here:
        for path in ("../other/.git/config", "../.github/workflows/ci.yml"):
            call = await here.prepare("write_file", path=str(tmp_path / "cwd" / path), content="x")
            assert call.always_asks
            assert call.action == Action("write", os.path.normpath(tmp_path / "cwd" / path))
        assert not (await here.prepare("write_file", path=f"{tmp_path}/other/x", content="x")).always_asks


async def test_names_above_the_session_do_not_count(tmp_path):
    cwd = tmp_path / ".cursor" / "worktrees" / "project"
    cwd.mkdir(parents=True)
    async with working(cwd) as here:
        assert not (await here.prepare("write_file", path="x.py", content="x")).always_asks


async def test_dragoman_home_and_named_agent_file_are_active(tmp_path):
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


async def test_file_that_becomes_active_after_the_question_asks_again(tmp_path):
    """A directory becomes Git's between the check and the write."""
    async with working(tmp_path) as here:
        (tmp_path / "store").mkdir()
        before = await here.workspace.find("store/config")
        (tmp_path / "store" / "objects").mkdir()
        (tmp_path / "store" / "HEAD").write_text("ref: refs/heads/main\n")
        assert not before.active
        assert await here.workspace.find("store/config") != before


def test_all_active_files_are_documented():
    section = DOCUMENT.read_text().partition("## Protected files")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`([^`]+)`", section))
    assert {pattern for patterns in ACTIVE_FILES.values() for pattern in patterns} <= documented
