"""A pytest plugin with the fixture `acp_agent`, which checks a project's agent.

Name the agent once, with `--acp-agent "my-agent --acp"` or `acp_agent = my-agent --acp` in the pytest configuration. A
test can name another one with `@pytest.mark.acp_agent("my-agent", "--acp")`:

    def test_the_agent_speaks_acp(acp_agent):
        acp_agent.assert_conforms(level="must")

Pytest imports this module at every start if dragoman is installed. All other modules are therefore imported when the
fixture is used.
"""

import shlex
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from dragoman.check.results import CheckReport

OPTION = "acp_agent"


class AcpAgent:
    """An agent under test. It is checked on first use, once per set of options."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self._reports: dict[str, CheckReport] = {}

    def check(self, **options: Any) -> "CheckReport":
        """Drive the agent and return the report. For the options see `dragoman.check.driver.AgentOptions`."""
        key = repr(sorted(options.items()))
        if key not in self._reports:
            self._reports[key] = self._run(options)
        return self._reports[key]

    def assert_conforms(
        self, level: Literal["must", "should"] = "should", known: Collection[str] = (), **options: Any
    ) -> None:
        """Fail the test with the report if a rule of this level or a more severe one fails and is not in `known`."""
        __tracebackhide__ = True
        from dragoman.check.baseline import without_known
        from dragoman.check.reports import text
        from dragoman.check.reports.named_report import NamedReport

        report = self.check(**options)
        if without_known(report, frozenset(known)).exit_code(level):
            name = shlex.join(self.command)
            pytest.fail(text.render(NamedReport(name, report, frozenset(known))), pytrace=False)

    def _run(self, options: dict[str, Any]) -> "CheckReport":
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        from dragoman.check.driver import AgentOptions, check_agent

        chosen = AgentOptions(command=self.command, **options)
        # Runs in its own loop and thread, because the test may already run in a loop.
        with _private_home(), ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(check_agent(chosen))).result()


@contextmanager
def _private_home() -> Generator[None]:
    """Store the sessions of kit agents in a temporary directory, because a test must leave nothing behind."""
    with TemporaryDirectory(prefix="dragoman-check-") as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_HOME", directory)
        patch.delenv("DRAGOMAN_STORE", raising=False)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the agent on the command line and in the configuration."""
    help_text = "the command of the ACP agent that the fixture acp_agent checks"
    parser.getgroup("acp").addoption("--acp-agent", dest=OPTION, metavar="COMMAND", help=help_text)
    parser.addini(OPTION, help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "acp_agent(*command): the ACP agent that the fixture acp_agent checks")


@pytest.fixture(scope="session")
def acp_agents() -> dict[tuple[str, ...], AcpAgent]:
    """Keep the checked agents by command for all tests of a run."""
    return {}


@pytest.fixture
def acp_agent(request: pytest.FixtureRequest, acp_agents: dict[tuple[str, ...], AcpAgent]) -> AcpAgent:
    """Return the named agent, ready to be checked."""
    command = _command(request)
    if not command:
        raise pytest.UsageError(
            'no agent given; use --acp-agent "COMMAND", acp_agent = COMMAND in the pytest configuration, '
            'or @pytest.mark.acp_agent("PROGRAM", "ARGUMENT")'
        )
    return acp_agents.setdefault(command, AcpAgent(command))


def _command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    mark = request.node.get_closest_marker(OPTION)
    if mark is not None:
        return tuple(map(str, mark.args))
    return tuple(shlex.split(request.config.getoption(OPTION) or str(request.config.getini(OPTION) or "")))
