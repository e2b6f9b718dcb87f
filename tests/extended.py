"""A pytest plugin for `make test`, which skips the tests marked `extended`.

In the directories of `EXTENDED` it skips every test without the mark `basic`. The last lines of a run count the skipped
tests.
"""

from collections import Counter
from pathlib import Path

import pytest

EXTENDED = (
    "tests/bridge/browser/",
    "tests/bridge/nodes/",
    "tests/check/mutants/",
    "tests/check/mutants_http/",
    "tests/check/mutants_v2/",
    "tests/conformance/",
    "tests/interop/",
)
LEFT_OUT = pytest.StashKey[Counter]()


def pytest_configure(config):
    config.stash[LEFT_OUT] = Counter()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.startswith(EXTENDED) and not item.get_closest_marker("basic"):
            item.add_marker("extended")


def pytest_deselected(items):
    for item in items:
        if item.get_closest_marker("extended"):
            directory = Path(item.nodeid.partition("::")[0]).parent
            item.config.stash[LEFT_OUT][str(directory)] += 1


def pytest_sessionfinish(session):
    """Send the counts from an xdist worker to its controller, which does not collect tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    # A worker that crashed has no output. Every other one deselects the same tests.
    node.config.stash[LEFT_OUT] = (
        Counter(getattr(node, "workeroutput", {}).get("left_out")) or node.config.stash[LEFT_OUT]
    )


def pytest_terminal_summary(terminalreporter, config):
    left_out = config.stash[LEFT_OUT]
    if left_out:
        counts = ", ".join(f"{directory} {count}" for directory, count in left_out.most_common())
        terminalreporter.write_line(f"Not run: {left_out.total()} extended tests ({counts}).")
        terminalreporter.write_line("To run them: make test-extended. To run all tests: make test-all.")
