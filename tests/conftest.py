import itertools
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.process_state import read_process_state, tell_changes
from tests.store.tiny_disk import mounted

pytest_plugins = ["tests.store.postgres"]

# The suite starts the program well over a thousand times: it is compiled once, whatever the shell that runs it says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that runs the suite in the background has it ignore SIGINT, and the programs that it starts would as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes, or is made, says only what else the machine does.
settings.register_profile("dragoman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dragoman")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Take two workers more than there are cores: half of the time a test waits, for processes and for time-outs."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return len(usable) + 2


def pytest_terminal_summary(terminalreporter):
    """Say how to get the same order again: the header, where it stands, is not shown with -q."""
    seed = terminalreporter.config.getoption("randomly_seed", None)
    if seed is not None:
        terminalreporter.write_line(f"The order was random; for the same again: pytest --randomly-seed={seed}")


@pytest.fixture(scope="session")
def homes(tmp_path_factory):
    """Names of homes: pytest's own numbering looks through all that were before, and every test takes one."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def process_state_is_kept():
    """No test changes what others find in the same process; what a foreign library sets up for itself is its own."""
    before = read_process_state()
    yield
    changes = tell_changes(before, read_process_state(), with_libraries=False)
    assert not changes, "the test left the process changed:\n" + "\n".join(changes)


@pytest.fixture(autouse=True)
def a_home_of_its_own(process_state_is_kept, homes, monkeypatch):
    """No test, and no child of one, touches the sessions of whoever runs the tests."""
    home = next(homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return home


@pytest.fixture
def home(a_home_of_its_own):
    """The home of this test, which `DRAGOMAN_HOME` names."""
    return a_home_of_its_own


@pytest.fixture
def no_keys(monkeypatch):
    """No model is configured by the environment, and no provider has a key or an address."""
    from dragoman.assistant.models.providers import PROVIDERS

    monkeypatch.delenv("DRAGOMAN_MODEL", raising=False)
    for provider in PROVIDERS.values():
        for variable in (*provider.variables, *provider.addresses):
            monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def tiny_disk(tmp_path):
    """A disk of 256 KiB that a test fills up or makes read-only."""
    with mounted(tmp_path / "disk") as disk:
        yield disk
