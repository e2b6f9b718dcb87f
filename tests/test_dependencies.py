"""Every package that dragoman imports is declared and documented."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dragoman"

NOT_OURS_TO_DECLARE = {
    "_typeshed": "exists for type checkers only",
    "pytest": "imports our plugin, and so is there",
}
BARE_NAMES = {path.stem for path in (SOURCE / "proc" / "fork_server").glob("*.py")}
"""The fork server is a separate program whose modules import each other without a package."""


def imported_packages():
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"dragoman"} - BARE_NAMES - NOT_OURS_TO_DECLARE.keys()


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for lines in project["optional-dependencies"].values() for line in lines)]
    return {normal(re.match(r"[\w.-]+", line)[0]) for line in lines}


def test_every_imported_package_is_declared():
    known = packages_distributions()
    missing = {name for name in imported_packages() if not declared() & {normal(each) for each in known.get(name, [])}}
    assert missing == set()


def test_every_declared_package_is_documented():
    documented = {normal(name) for name in re.findall(r"`([\w.-]+)`", (ROOT / "docs" / "dependencies.md").read_text())}
    assert declared() - documented == set()
