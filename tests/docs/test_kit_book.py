"""The programs of the page about the kit are written to files, its commands are run, and print what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def chapters():
    """Return the blocks of each chapter of the page."""
    page = (ROOT / "docs/kit.md").read_text()
    parts = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)
    found = zip(parts[1::2], parts[2::2], strict=True)
    return {title: BLOCK.findall(text) for title, text in found if BLOCK.search(text)}


CHAPTERS = chapters()


def write_program(directory, text):
    name = re.match(r"# (\w+\.py)\n", text)[1]
    (directory / name).write_text(text)


@pytest.mark.parametrize("title", CHAPTERS)
def test_the_programs_of_the_chapter_do_what_it_says(title, tmp_path):
    write_program(tmp_path, CHAPTERS["The first agent"][0][1])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "DRAGOMAN_HOME": str(tmp_path / "home")}
    printed, expected = [], []
    for language, text in CHAPTERS[title]:
        if language == "python":
            write_program(tmp_path, text)
        elif language == "sh":
            command = ["sh", "-ec", text]
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
            )
            printed.append((done.stdout, done.stderr))
        else:
            expected.append(text)
    assert [out.rstrip("\n") + "\n" for out, _ in printed] == expected, printed
