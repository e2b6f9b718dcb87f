"""Short runs of the fuzz targets. `make soak` runs them for longer."""

import re
import subprocess
import sys

import pytest

from tests.fuzz import campaign
from tests.fuzz.targets import TARGETS

SECONDS = 2
MIN_INPUTS = 30
"""Runs per test. A few seconds allow thousands, or hundreds on a busy machine. Fewer would mean no fuzzing."""

SEEDS = sorted(campaign.SEEDS.iterdir())

needs_atheris = pytest.mark.skipif(not campaign.is_possible(), reason=campaign.WHY_NOT)
every_target = pytest.mark.parametrize("target", TARGETS)


@every_target
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_seed_corpus_passes_every_target(target, seed):
    TARGETS[target].check(seed.read_bytes())


@every_target
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_lines_and_half_lines_of_the_seed_corpus_pass(target, seed):
    for line in seed.read_bytes().splitlines():
        TARGETS[target].check(line)
        TARGETS[target].check(line[: len(line) // 2] + b"\n" + line)


@pytest.mark.extended
@needs_atheris
@every_target
def test_short_fuzzing_finds_nothing(target, tmp_path):
    outcome = campaign.run(target, SECONDS, findings=tmp_path)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.inputs > MIN_INPUTS


@needs_atheris
def test_finding_ends_the_run_with_its_reproducer(tmp_path):
    program = (
        "import atheris; atheris.Setup(['x', '-runs=9', '-artifact_prefix=%s/'], lambda data: 1 / 0); atheris.Fuzz()"
    )
    done = subprocess.run([sys.executable, "-c", program % tmp_path], capture_output=True, check=False)
    assert done.returncode != 0
    command = campaign.replay_command("framing", done.stderr.decode() + done.stdout.decode())
    assert re.search(r"engine framing \S*crash-", command)


def test_unknown_target_is_refused_by_name():
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "no-such"], cwd=campaign.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no such target: no-such; there are framing" in done.stderr
