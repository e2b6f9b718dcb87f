"""deploy/kubernetes.yaml, validated against the schemas of Kubernetes without a cluster."""

import re
import subprocess

import pytest

from tests.containers.engine import ROOT

FILE = ROOT / "deploy" / "kubernetes.yaml"


def validate(file):
    return subprocess.run(["kubernetes-validate", "--strict", file], capture_output=True, text=True, check=False)


def test_every_part_is_valid():
    done = validate(FILE)
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count(" passed ") == len(re.findall("^kind:", FILE.read_text(), re.MULTILINE))


@pytest.mark.parametrize(("word", "wrong"), [("containerPort:", "port:"), ("terminationGracePeriodSeconds:", "grace:")])
def test_a_wrong_name_is_found(word, wrong, tmp_path):
    changed = tmp_path / "changed.yaml"
    changed.write_text(FILE.read_text().replace(word, wrong))
    assert validate(changed).returncode == 1
