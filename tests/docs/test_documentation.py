"""What the documentation shows is run, so that it stays true."""

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_heading_leads_to_one(page):
    for target, anchor in re.findall(r"\]\(([^):#]*\.md|)#([^)]+)\)", page.read_text()):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


def test_the_index_has_every_page():
    index = (ROOT / "docs/README.md").read_text()
    linked = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)#:]+)", index)}
    assert [page.name for page in PAGES if page.parent == ROOT / "docs" and page not in linked] == ["README.md"]


def test_the_agent_and_the_client_in_the_readme_run_together(tmp_path):
    agent, client = blocks("README.md", "python")
    (tmp_path / "notes_agent.py").write_text(agent)
    done = finish([sys.executable, "-c", client], cwd=tmp_path, variables={"DRAGOMAN_HOME": str(tmp_path / "home")})
    assert done.stdout == "Noted. end_turn ['buy milk']\n", done.stderr
    assert (tmp_path / "notes.txt").read_text() == "buy milk"


def test_the_scripted_peers_in_the_docs_run():
    for program in blocks("docs/testing.md", "python"):
        run([sys.executable, "-c", program])


def test_the_program_on_protocol_versions_runs():
    [program] = blocks("docs/protocol-versions.md", "python")
    run([sys.executable, "-c", program])


TUTORIAL = blocks("docs/client.md", "python")


@pytest.mark.parametrize("number", range(len(TUTORIAL)))
def test_the_programs_of_the_client_tutorial_run(number):
    run([sys.executable, "-W", "error", "-c", TUTORIAL[number]])


def test_three_tasks_are_evaluated_as_the_docs_show():
    evaluation, _ = blocks("docs/client-examples.md", "python")
    assert run([sys.executable, "-W", "error", "-c", evaluation]) == "2 of 3\n"


@pytest.fixture
def reviewed(tmp_path):
    """A repository with a change since origin/main, and `review.py` of the docs in it."""
    _, review = blocks("docs/client-examples.md", "python")
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
    [command] = blocks("docs/client-examples.md", "sh")
    return finish(["sh", "-c", command], cwd=repository, variables={"AGENT": agent})


def scripted_review(repository, *replies):
    """Review with our own agent, which talks from a script; what it is sent goes to `sent` as well."""
    (repository / "script.yaml").write_text(json.dumps(replies))
    return review_with("sh -c 'tee sent | dragoman agent --model script:script.yaml'", repository)


@pytest.mark.parametrize(
    ("verdict", "exit_code"), [("APPROVED", 0), ("REJECTED", 1), ("Perhaps REJECTED, perhaps not.", 2)]
)
def test_the_verdict_of_a_review_is_the_exit_code_of_the_job(verdict, exit_code, reviewed):
    done = scripted_review(reviewed, [{"text": "The sum is a difference.\n"}, {"text": verdict}])
    assert (done.returncode, done.stdout) == (exit_code, f"The sum is a difference.\n{verdict}\n"), done.stderr
    assert "-total = a + b\\n+total = a - b" in (reviewed / "sent").read_text()


def test_a_reviewer_may_read_and_not_write(reviewed):
    read = {"tool": {"name": "read_file", "arguments": {"path": "sum.py"}}}
    write = {"tool": {"name": "write_file", "arguments": {"path": "sum.py", "content": "total = 0"}}}
    done = scripted_review(reviewed, [read], [write], [{"text": "APPROVED"}])
    assert (done.returncode, done.stdout) == (0, "APPROVED\n"), done.stderr
    sent = (reviewed / "sent").read_text()
    assert '"content":"total = a - b' in sent
    assert '"optionId":"reject' in sent
    assert (reviewed / "sum.py").read_text() == "total = a - b\n"


def test_a_review_that_fails_fails_the_job_with_the_reason(reviewed):
    done = review_with("no-such-agent", reviewed)
    assert done.returncode == 2
    assert done.stderr.startswith("There is no review: ")
    assert "no-such-agent" in done.stderr


def test_no_change_needs_no_review(reviewed):
    run(["git", "update-ref", "refs/remotes/origin/main", "HEAD"], cwd=reviewed)
    assert review_with("no-such-agent", reviewed).stdout == "Nothing has changed.\n"


def test_the_program_that_gives_a_function_as_a_tool_prints_what_the_docs_say():
    program, snippet = blocks("docs/function-tools.md", "python")
    [printed] = blocks("docs/function-tools.md", "text")
    assert run([sys.executable, "-W", "error", "-c", program]).endswith(
        printed
    )  # the agent may say that it waits first
    run([sys.executable, "-W", "error", "-c", snippet])


def test_the_agent_files_that_connect_a_model_are_good_ones():
    names = [parse_profile(text, ROOT / "dragoman.yaml").model.name for text in blocks("docs/models.md", "yaml")]
    assert names == ["openai:NAME-OF-THE-MODEL", "anthropic:claude-sonnet-5-5"]


def test_the_scripts_in_the_docs_are_good_scripts():
    load_script(ROOT / "docs/example.yaml")
    for script in blocks("docs/script-model.md", "yaml"):
        parse_script(script, "script-model.md")


def test_the_turns_that_steer_a_checked_agent_are_a_good_script(tmp_path):
    [text] = [block for block in blocks("docs/check.md", "text") if block.startswith("- prompt")]
    file = tmp_path / "turns.yaml"
    file.write_text(text)
    assert [(turn.permission, turn.cancel) for turn in read_script(file)] == [
        ("allow", None),
        ("reject", None),
        ("allow", "update"),
    ]


def test_the_file_of_several_agents_in_the_docs_is_a_good_one(tmp_path):
    [text] = blocks("docs/browser.md", "json")
    file = tmp_path / "agents.json"
    file.write_text(text)
    titles = {agent.name: agent.title for agent in read_agents_file(file)}
    assert titles == {"ours": "Dragoman", "claude": "Claude"}


@pytest.mark.parametrize(("asked", "is_new"), [(["PYTHON=./other"], True), (["PYTHON=./same"], False), ([], False)])
def test_an_environment_of_another_python_than_asked_for_is_made_anew(tmp_path, asked, is_new):
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_source_file_and_module_that_a_page_names_exists(page):
    text = "" if page.name in OF_OTHER_PLACES else page.read_text()
    for path in re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)+\.py)`", text):
        assert any((folder / path).exists() for folder in (ROOT, ROOT / "src" / "dragoman")), path
    for name in re.findall(r"`(dragoman(?:\.\w+)+)`", text):
        assert name in NOT_MODULES or resolves(name), name


NOT_MODULES = {"dragoman.yaml"}
OF_OTHER_PLACES = {"CHANGELOG.md", "check-matrix.md"}  # which name former places, and files of others


def resolves(name):
    """Say whether a dotted name is a module, or a name in one."""
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return hasattr(importlib.import_module(module), attribute)
    return True
