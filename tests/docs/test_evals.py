"""The evaluation examples run."""

import json
import subprocess
import sys

import jsonschema
import pytest

from tests.docs.test_documentation import ROOT, blocks, run

LOOP = ROOT / "examples" / "evals" / "plain_loop.py"


def test_documented_evaluation_program_runs():
    [program] = blocks("docs/evals.md", "python")
    run([sys.executable, "-W", "error", "-c", program])


@pytest.mark.extended
def test_plain_loop_writes_trajectories(tmp_path):
    run([sys.executable, "-W", "error", str(LOOP), "--output", str(tmp_path)])
    schema = json.loads((ROOT / "tests/client/atif.schema.json").read_text())
    documents = {path.stem: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert sorted(documents) == ["hello", "question", "rename"]
    for document in documents.values():
        jsonschema.validate(document, schema)
    assert documents["question"]["steps"][-1]["message"] == "42"


def test_invalid_agent_is_a_failed_row_of_the_table():
    done = subprocess.run([sys.executable, str(LOOP), "false"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "0 of 3 passed" in done.stdout
    assert "error: false ended before it answered" in done.stdout
