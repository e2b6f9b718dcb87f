"""What the documentation shows is run, so that it stays true."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.agent.models.script import load_script, parse_script

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def run(command, **options):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=environment, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_program_in_the_readme_runs():
    [program] = blocks("README.md", "python")
    output = run([sys.executable, "-c", program])
    assert output.startswith("[list_directory]\n")
    assert output.endswith("end_turn\n")


def test_the_scripted_peers_in_the_docs_run():
    for program in blocks("docs/testing.md", "python"):
        run([sys.executable, "-c", program])
    for command in blocks("docs/testing.md", "sh"):
        assert run(["sh", "-c", command]) == "Hello.\n"


def test_the_programs_of_the_client_tutorial_run():
    for program in blocks("docs/client.md", "python"):
        run([sys.executable, "-W", "error", "-c", program])


def test_the_program_that_gives_a_function_as_a_tool_prints_what_the_docs_say():
    program, snippet = blocks("docs/function-tools.md", "python")
    [printed] = blocks("docs/function-tools.md", "text")
    assert run([sys.executable, "-W", "error", "-c", program]).endswith(
        printed
    )  # the agent may say that it waits first
    run([sys.executable, "-W", "error", "-c", snippet])


def test_the_scripts_in_the_docs_are_good_scripts():
    load_script(ROOT / "docs/example.yaml")
    for script in blocks("docs/script-model.md", "yaml"):
        parse_script(script, "script-model.md")


def test_the_main_job_of_the_readme_is_done():
    assert "I am **guide**" in run(["make", "--no-print-directory", "run", f"PYTHON={sys.executable}"])
