"""What is published is whole: the distributions have every file, and the wheel works where there is nothing else."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dragoman import __version__

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "scripts" / "release"


@pytest.fixture(scope="module")
def check():
    specification = importlib.util.spec_from_file_location("release_check", SCRIPTS / "check.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(check, tmp_path_factory):
    return check.build(tmp_path_factory.mktemp("dist"))


@pytest.mark.timeout(600)  # it installs all dependencies
def test_the_distributions_are_whole_and_the_wheel_works_in_an_empty_environment(check, built):
    sdist, wheel = built
    assert [*check.judge_sdist(sdist), *check.judge_wheel(wheel)] == []
    command = [sys.executable, SCRIPTS / "try_wheel.py", "--pinned", ROOT / "requirements" / "run.txt", wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "first answer" in done.stdout) == (0, True), done.stderr


def test_a_wheel_without_a_file_and_with_a_foreign_one_is_refused(check, built, tmp_path):
    _, whole = built
    torn = tmp_path / whole.name
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(torn, "w") as target:
        for name in source.namelist():
            if name != "dragoman/py.typed":
                target.writestr(name, source.read(name))
        target.writestr("tests/left_over.py", "")
    assert list(check.judge_wheel(torn)) == [
        f"{torn.name} has no dragoman/py.typed",
        f"{torn.name} has tests/left_over.py, which is no part of it",
    ]


@pytest.mark.parametrize(
    ("changelog", "tag", "fault"),
    [
        ("## [Unreleased]\n\n## [{version}] - 2026-11-18\n", "v{version}", None),
        ("## [{version}] - 2026-11-18\n\n## [Unreleased]\n", None, "does not begin with the section [Unreleased]"),
        ("## [Unreleased]\n\n## [0.0.1] - 2026-11-18\n", None, "does not go on with the section [{version}]"),
        ("## [Unreleased]\n", None, "does not go on with the section [{version}]"),
        ("## [Unreleased]\n\n## [{version}] - 2026-11-18\n", "v9", "the tag is v9, and the version {version} wants"),
    ],
)
def test_a_release_needs_its_section_in_the_changelog_and_its_tag(check, changelog, tag, fault, tmp_path, monkeypatch):
    (tmp_path / "CHANGELOG.md").write_text(changelog.format(version=__version__))
    monkeypatch.setattr(check, "ROOT", tmp_path)
    faults = list(check.judge_release(tag and tag.format(version=__version__)))
    assert [fault.format(version=__version__) in found for found in faults[:1]] == ([True] if fault else []), faults
