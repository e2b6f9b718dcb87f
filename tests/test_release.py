"""The published distributions have every file, and the wheel works in an empty environment."""

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


@pytest.mark.extended
@pytest.mark.timeout(600)  # it installs all dependencies
def test_distributions_are_complete_and_the_wheel_works(check, built):
    sdist, wheel = built
    assert [*check.judge_sdist(sdist), *check.judge_wheel(wheel)] == []
    command = [sys.executable, SCRIPTS / "try_wheel.py", "--pinned", ROOT / "requirements" / "run.txt", wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "first answer" in done.stdout) == (0, True), done.stderr


@pytest.mark.extended
def test_wheel_with_missing_or_extra_files_is_refused(check, built, tmp_path):
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
        ("## {version} - 2026-11-18\n", "v{version}", None),
        ("## {version} - 2026-11-18\n", None, None),
        ("## {version} (unreleased)\n", None, None),
        ("## {version} (unreleased)\n", "v{version}", "must start with the section {version} - YYYY-MM-DD"),
        ("## 0.0.1 - 2026-11-18\n\n## {version} - 2026-11-18\n", None, "must start with the section {version} (unrel"),
        ("", None, "must start with the section {version} (unreleased)"),
        ("## {version} - 2026-11-18\n", "v9", "the tag is v9, and the version {version} wants"),
    ],
)
def test_release_needs_its_changelog_section_and_tag(check, changelog, tag, fault, tmp_path, monkeypatch):
    (tmp_path / "CHANGELOG.md").write_text(changelog.format(version=__version__))
    monkeypatch.setattr(check, "ROOT", tmp_path)
    faults = list(check.judge_release(tag and tag.format(version=__version__)))
    assert [fault.format(version=__version__) in found for found in faults[:1]] == ([True] if fault else []), faults
