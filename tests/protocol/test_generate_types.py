"""The generator reports stale output, and always writes the same."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROTOCOL = Path("src", "dragoman", "protocol")


@pytest.fixture
def tree(tmp_path):
    """Copy the generator's input and output to a temporary directory."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("schema", "generated"):
        shutil.copytree(ROOT / PROTOCOL / folder, tmp_path / PROTOCOL / folder)
    return tmp_path


def run(tree, *options):
    command = [sys.executable, tree / "scripts" / "generate_types.py", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_repository_is_up_to_date():
    done = run(ROOT, "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_stale_file_is_named_with_a_short_diff(tree):
    types = tree / PROTOCOL / "generated" / "v1.py"
    types.write_text(types.read_text("utf-8").replace("SessionId = str", "SessionId = int"), "utf-8")
    done = run(tree, "--check")
    assert done.returncode == 1
    assert f"{types} is not what the schema gives; run scripts/generate_types.py" in done.stderr
    assert "-SessionId = int\n+SessionId = str" in done.stderr
    assert "SessionId = int" in types.read_text("utf-8")


def test_a_missing_file_is_stale(tree):
    (tree / PROTOCOL / "generated" / "v1_marks.py").unlink()
    done = run(tree, "--check")
    assert done.returncode == 1
    assert "lines more" in done.stderr


def test_generating_again_changes_nothing(tree):
    generated = tree / PROTOCOL / "generated"
    before = {path.name: path.read_text("utf-8") for path in generated.glob("v1*.py")}
    for path in generated.glob("v1*.py"):
        path.unlink()
    assert run(tree).returncode == 0
    assert {path.name: path.read_text("utf-8") for path in generated.glob("v1*.py")} == before
