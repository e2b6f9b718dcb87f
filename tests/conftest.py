import gc
import itertools
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.process_state import list_changes, read_process_state
from tests.store.tiny_disk import mounted

pytest_plugins = ["tests.extended", "tests.sandbox.machine", "tests.store.postgres"]

# The suite starts the program over a thousand times, so it is compiled once, even if the environment forbids it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that runs the suite in the background makes it ignore SIGINT, and child processes would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The time that an example takes depends only on the load of the machine.
settings.register_profile("dragoman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dragoman")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Use two workers more than cores, because tests spend half of their time waiting for processes and timeouts."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return len(usable) + 2


def pytest_collection_finish():
    """Exempt the collected tests from garbage collection, because each full collection would visit all of them."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Print how to repeat the order of the tests, because -q hides the header that contains it."""
    seed = terminalreporter.config.getoption("randomly_seed", None)
    if seed is not None:
        terminalreporter.write_line(f"The order was random. Repeat it with: pytest --randomly-seed={seed}")


@pytest.fixture(scope="session")
def homes(tmp_path_factory):
    """Generate paths of homes. pytest's own numbering scans all earlier directories, and every test needs a home."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def process_state_is_kept():
    """Check that a test leaves the process unchanged, except for the loggers that other libraries create."""
    before = read_process_state()
    yield
    changes = list_changes(before, read_process_state(), with_libraries=False)
    assert not changes, "the test left the process changed:\n" + "\n".join(changes)


@pytest.fixture(autouse=True)
def own_home(process_state_is_kept, homes, monkeypatch):
    """Keep tests and their child processes away from the user's sessions."""
    home = next(homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return home


@pytest.fixture
def home(own_home):
    """The home of this test, as in `DRAGOMAN_HOME`."""
    return own_home


@pytest.fixture
def no_keys(monkeypatch):
    """Remove all model settings, keys and addresses of providers from the environment."""
    from dragoman.assistant.models.providers import PROVIDERS

    monkeypatch.delenv("DRAGOMAN_MODEL", raising=False)
    for provider in PROVIDERS.values():
        for variable in (*provider.variables, *provider.addresses):
            monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def tiny_disk(tmp_path):
    """Mount a disk of 256 KiB that a test fills or makes read-only."""
    with mounted(tmp_path / "disk") as disk:
        yield disk
