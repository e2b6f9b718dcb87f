"""Run tests and print the line and branch coverage of each package of `src`: `make coverage`.

Arguments are passed to pytest, such as a directory of tests. Processes that the tests start are measured as well, even
if SIGTERM ends them. Killed processes are lost, so some lines are covered although the table does not count them.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".cache" / "coverage"
PACKAGES = ROOT / "src" / "dragoman"
KINDS = {"lines": ("num_statements", "covered_lines"), "branches": ("num_branches", "covered_branches")}


def main() -> int:
    """Return the exit code of pytest."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    run("erase")
    code = run("run", "-m", "pytest", *(sys.argv[1:] or ("-n", "auto", "--dist", "worksteal", "-m", "not extended")))
    run("combine", "--quiet")
    report = FOLDER / "report.json"
    run("json", "--quiet", "-o", str(report))
    print_table(json.loads(report.read_text())["files"])
    return code


def run(*arguments: str) -> int:
    """Run a command of coverage and return its exit code."""
    return subprocess.run((sys.executable, "-m", "coverage", *arguments), cwd=ROOT, check=False).returncode


def print_table(files: dict[str, dict[str, dict[str, int]]]) -> None:
    """Print a row per package, and one for all."""
    packages: dict[str, Counter[str]] = {}
    for path, found in files.items():
        for package in (name_package(ROOT / path), "all"):
            packages.setdefault(package, Counter()).update(
                {name: found["summary"][name] for names in KINDS.values() for name in names}
            )
    print("| package | lines | branches |\n|---|---|---|")
    for package in sorted(packages, key=lambda name: (name == "all", name)):
        shares = (share(packages[package], *names) for names in KINDS.values())
        print(f"| {package} | {' | '.join(shares)} |")


def name_package(path: Path) -> str:
    """Return the first part below `dragoman`: a package, or `dragoman` for a single module."""
    parts = path.relative_to(PACKAGES).parts
    return parts[0] if len(parts) > 1 else "dragoman"


def share(counts: Counter[str], total: str, covered: str) -> str:
    """Return a percentage with its total."""
    return f"{100 * counts[covered] / counts[total]:.1f}% of {counts[total]:,}" if counts[total] else "none"


if __name__ == "__main__":
    sys.exit(main())
