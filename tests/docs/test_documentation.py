"""The examples in the documentation run."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.assistant.models.script import load_script, parse_script
from dragoman.assistant.profile.profile import parse_profile
from dragoman.bridge import read_agents_file
from dragoman.check.driver import read_script
from tests.table import each_row

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def finish(command, *, cwd=ROOT, variables=None):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **(variables or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd, env=environment, check=False)


def run(command, *, cwd=ROOT):
    done = finish(command, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@each_row("page", PAGES)
def test_links_to_files_resolve(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_row("page", PAGES)
def test_links_to_headings_resolve(page):
    for target, anchor in re.findall(r"\]\(([^):#]*\.md|)#([^)]+)\)", page.read_text()):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


def test_index_lists_every_page():
    index = (ROOT / "docs/README.md").read_text()
    linked = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)#:]+)", index)}
    assert [page.name for page in PAGES if page.parent == ROOT / "docs" and page not in linked] == ["README.md"]


def test_documented_scripted_peers_run():
    for program in blocks("docs/testing.md", "python"):
        run([sys.executable, "-c", program])


def test_documented_version_program_runs():
    [program] = blocks("docs/protocol-versions.md", "python")
    run([sys.executable, "-c", program])


CLIENT = blocks("docs/client.md", "python") + blocks("docs/client-topics.md", "python")[:-1]


@each_row("number", range(len(CLIENT)))
@pytest.mark.extended
def test_documented_client_programs_run(number):
    run([sys.executable, "-W", "error", "-c", CLIENT[number]])


@pytest.fixture
def reviewed(tmp_path):
    """A repository with a change since origin/main, and `review.py` of the docs in it."""
    *_, review = blocks("docs/client-topics.md", "python")
    sum_file = tmp_path / "sum.py"
    sum_file.write_text("total = a + b\n")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com"]
    for arguments in (
        ["init", "-q"],
        ["add", "sum.py"],
        ["commit", "-q", "-m", "Add"],
        ["update-ref", "refs/remotes/origin/main", "HEAD"],
    ):
        run([*git, *arguments], cwd=tmp_path)
    sum_file.write_text("total = a - b\n")
    run([*git, "commit", "-q", "-a", "-m", "Change"], cwd=tmp_path)
    (tmp_path / "review.py").write_text(review)
    return tmp_path


def review_with(agent, repository):
    [command] = [block for block in blocks("docs/client-topics.md", "sh") if "review.py" in block]
    return finish(["sh", "-c", command], cwd=repository, variables={"AGENT": agent})


def scripted_review(repository, *replies):
    """Review with our own agent and a scripted model. Messages to the agent are also written to `sent`."""
    (repository / "script.yaml").write_text(json.dumps(replies))
    return review_with("sh -c 'tee sent | dragoman agent --model script:script.yaml'", repository)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("verdict", "exit_code"), [("APPROVED", 0), ("REJECTED", 1), ("Perhaps REJECTED, perhaps not.", 2)]
)
def test_review_verdict_sets_the_jobs_exit_code(verdict, exit_code, reviewed):
    done = scripted_review(reviewed, [{"text": "The sum is a difference.\n"}, {"text": verdict}])
    assert (done.returncode, done.stdout) == (exit_code, f"The sum is a difference.\n{verdict}\n"), done.stderr
    assert "-total = a + b\\n+total = a - b" in (reviewed / "sent").read_text()


def test_reviewer_may_read_but_not_write(reviewed):
    read = {"tool": {"name": "read_file", "arguments": {"path": "sum.py"}}}
    write = {"tool": {"name": "write_file", "arguments": {"path": "sum.py", "content": "total = 0"}}}
    done = scripted_review(reviewed, [read], [write], [{"text": "APPROVED"}])
    assert (done.returncode, done.stdout) == (0, "APPROVED\n"), done.stderr
    sent = (reviewed / "sent").read_text()
    assert '"content":"total = a - b' in sent
    assert '"optionId":"reject' in sent
    assert (reviewed / "sum.py").read_text() == "total = a - b\n"


def test_failed_review_fails_the_job_with_its_reason(reviewed):
    done = review_with("no-such-agent", reviewed)
    assert done.returncode == 2
    assert done.stderr.startswith("There is no review: ")
    assert "no-such-agent" in done.stderr


def test_unchanged_branch_is_not_reviewed(reviewed):
    run(["git", "update-ref", "refs/remotes/origin/main", "HEAD"], cwd=reviewed)
    assert review_with("no-such-agent", reviewed).stdout == "Nothing has changed.\n"


def test_documented_function_tool_prints_the_documented_output():
    program, snippet = blocks("docs/function-tools.md", "python")
    [printed] = blocks("docs/function-tools.md", "text")
    assert run([sys.executable, "-W", "error", "-c", program]).endswith(
        printed
    )  # the agent may first report that it waits
    run([sys.executable, "-W", "error", "-c", snippet])


def test_documented_agent_files_are_valid():
    names = [parse_profile(text, ROOT / "dragoman.yaml").model.name for text in blocks("docs/models.md", "yaml")]
    assert names == ["openai:NAME-OF-THE-MODEL", "anthropic:claude-sonnet-5-5"]


def test_documented_scripts_are_valid():
    load_script(ROOT / "docs/example.yaml")
    for script in blocks("docs/testing.md", "yaml"):
        parse_script(script, "testing.md")


def test_documented_checker_turns_are_valid(tmp_path):
    [text] = [block for block in blocks("docs/check.md", "text") if block.startswith("- prompt")]
    file = tmp_path / "turns.yaml"
    file.write_text(text)
    assert [(turn.permission, turn.cancel) for turn in read_script(file)] == [
        ("allow", None),
        ("reject", None),
        ("allow", "update"),
    ]


def test_documented_file_of_agents_is_valid(tmp_path):
    [text] = blocks("docs/browser.md", "json")
    file = tmp_path / "agents.json"
    file.write_text(text)
    titles = {agent.name: agent.title for agent in read_agents_file(file)}
    assert titles == {"ours": "Dragoman", "claude": "Claude"}


@pytest.mark.parametrize(("asked", "is_new"), [(["PYTHON=./other"], True), (["PYTHON=./same"], False), ([], False)])
def test_environment_with_another_python_is_recreated(tmp_path, asked, is_new):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / ".made").touch()
    for name, version in ((".venv/bin/python", "3.11"), ("same", "3.11"), ("other", "3.13")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o700)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "MAKEFLAGS")}
    made = subprocess.run(
        ["make", "-n", ".venv/.made", *asked], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert ("Making .venv with Python 3.13" in made.stdout) == is_new


@each_row("page", PAGES)
def test_documented_source_files_and_modules_exist(page):
    text = "" if page.name in OF_OTHER_PLACES else page.read_text()
    for path in re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)+\.py)`", text):
        assert any((folder / path).exists() for folder in (ROOT, ROOT / "src" / "dragoman")), path
    for name in re.findall(r"`(dragoman(?:\.\w+)+)`", text):
        assert name in NOT_MODULES or resolves(name), name


NOT_MODULES = {"dragoman.yaml"}
OF_OTHER_PLACES = {"CHANGELOG.md", "check-matrix.md"}  # these name earlier paths and files of other projects


def resolves(name):
    """Return whether a dotted name is a module or a name in one."""
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return hasattr(importlib.import_module(module), attribute)
    return True
