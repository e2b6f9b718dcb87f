"""Every command in a documentation block is run as written, or is listed in `NOT_RUN` with the reason."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import PAGES, ROOT, commands_of, name_of
from tests.docs.scenes import WITH_DATABASE, prepare
from tests.docs.shell import PageShell, network

pytestmark = pytest.mark.timeout(600)  # a page has up to twenty commands, one after another

NO_ENGINE = "the tests start no container engine; `make containers` does"
FROM_AN_INDEX = "it installs from a package index, which the tests do not ask"
NOT_RUN = {
    "make test": "it runs these tests",
    "dragoman check agent": "it takes a quarter of a minute; the tests of the checker judge our own agent too",
    "python review.py origin/main...HEAD": "test_documentation.py runs it in repositories with several changes",
    "docker build -f deploy/Containerfile -t dragoman .": NO_ENGINE,
    "podman build -f deploy/Containerfile -t dragoman .": NO_ENGINE,
    'podman run --rm -it -p 127.0.0.1:8421:8421 -v dragoman:/data -v "$PWD:/work" dragoman': NO_ENGINE,
    "DRAGOMAN_NAME=agents.example.lan docker compose up -d": NO_ENGINE,
    "docker compose logs dragoman": NO_ENGINE,
    'docker compose exec dragoman dragoman run "Who are you?" --url http://127.0.0.1:8421/acp': NO_ENGINE,
    "docker run --rm -p 4318:4318 -p 16686:16686 jaegertracing/jaeger": NO_ENGINE,
    '.venv/bin/python -m pip install -e ".[postgresql]"': FROM_AN_INDEX,
    '.venv/bin/python -m pip install -e ".[otel]"': FROM_AN_INDEX,
    "pip install jupyterlab jupyter-ai jupyter-ai-acp-client": FROM_AN_INDEX,
    "dragoman agents install pi-acp": "it asks at a terminal; test_agents_install.py runs it",
    "jupyter lab": "Jupyter is not installed with the tests, and opens a browser",
    "marimo edit notebook.py --port 2718": "marimo is not installed with the tests, and opens a browser",
    'harbor run --dataset terminal-bench@2.0 --agent harbor_agent:AcpAgent --agent-kwarg command="claude-agent-acp"': (
        "harbor has 400 MB; `make examples` runs its agent"
    ),
    'inspect eval examples/evals/inspect_task.py --model mockllm/model -T command="claude-agent-acp"': (
        "Inspect has 320 MB; `make examples` runs the task"
    ),
}

PARTS = {name_of(page): list(commands_of(page)) for page in PAGES}
COMMANDS = [command for parts in PARTS.values() for part in parts if isinstance(part, list) for command in part]
WITH_COMMANDS = list(dict.fromkeys(command.page for command in COMMANDS if command.text not in NOT_RUN))

INITIALIZE = '{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1, '
INITIALIZE += '"clientCapabilities": {}, "clientInfo": {"name": "page", "version": "1"}}}\n'
PROXY = INITIALIZE.replace('"initialize"', '"proxy/initialize"')


@dataclass(frozen=True)
class Manner:
    """How to run a command: its stdin, the user's input, and the output that shows that it works."""

    given: str = ""
    typed: str | None = None
    prints: str = ""
    goes_on: bool = False
    opens_page: bool = False


SERVES = Manner(prints="/login?code=", goes_on=True)
MANNERS = {
    r"make run\b|dragoman serve\b": SERVES,
    r"dragoman check client --listen": Manner(prints="ws://127.0.0.1:", goes_on=True),
    r"dragoman chat\b": Manner(given="Who are you?\n", prints="\n"),
    r"dragoman tap --proxy": Manner(given=PROXY, prints='"proxy/successor"'),
    r"(\w+=\S+ )?dragoman (agent|attach|tap)\b(?!s)": Manner(given=INITIALIZE, prints='"protocolVersion":1'),
    r"dragoman editor zed": Manner(prints='"agent_servers"'),
    r'dragoman run "find TODO in src"': Manner(prints="TODO: begin"),
    r"dragoman login\b": Manner(given="sk-ant-a-key\n"),
    r"dragoman mcp login\b": Manner(prints="http://", opens_page=True),
    r"dragoman sessions delete\b": Manner(typed="y\n"),
}
# The answer of `guide`, the model without a key, to an unknown prompt.
NOT_UNDERSTOOD = "I can't do that without a language model"
# Commands that are documented for their exit code.
EXIT_CODES = {'dragoman run "buy milk" -- python note_agent.py': 6}


def manner_of(command):
    return next((manner for pattern, manner in MANNERS.items() if re.match(pattern, command.text)), Manner())


@pytest.mark.extended
@pytest.mark.parametrize("page", [page for page in WITH_COMMANDS if page != WITH_DATABASE])
def test_documented_commands_produce_the_documented_output(page, tmp_path):
    play_page(page, tmp_path)


@pytest.mark.extended
def test_documented_database_commands_produce_the_documented_output(tmp_path, postgres):
    play_page(WITH_DATABASE, tmp_path, postgres)


def play_page(page, directory, database_server=None):
    with network() as into_network:
        shell = PageShell(directory, into_network)
        try:
            words = prepare(page, shell, database_server)
            for part in PARTS[page]:
                play(shell, words, part)
        finally:
            shell.stop("")


def play(shell, words, part):
    """Write a page's file, or run the commands of a block."""
    if isinstance(part, tuple):
        name, text = part
        (shell.current_directory / name).write_text(text)
        return
    printed = ""
    for command in part:
        if command.text in NOT_RUN:
            continue
        printed += run(shell, words, command)
        if command.shown is not None:
            assert fits(printed.replace(str(shell.home), "/home/me"), command.shown), f"{command}\nprinted\n{printed}"
            printed = ""


def run(shell, words, command):
    manner, text = manner_of(command), command.text
    for word, meant in words.items():
        text = text.replace(word, meant)
    if manner.goes_on or manner.opens_page:
        shell.stop(("dragoman serve", "make run"))
        printed = shell.start(text, lambda printed: manner.prints in printed)
        if manner is SERVES:
            assert_serves(shell, text, printed)
        if manner.opens_page:
            open_page(shell, re.search(r"http://\S+", printed)[0])
            shell.finish()
        return printed
    done = shell.run(text, given=manner.given, typed=manner.typed)
    told = f"{command}\nended with {done.returncode} and printed\n{done.stdout}\n{done.stderr}"
    assert done.returncode == EXIT_CODES.get(command.text, 0), told
    assert manner.prints in done.stdout, told
    assert "Traceback" not in done.stderr, told
    assert NOT_UNDERSTOOD not in done.stdout, told
    return done.stdout


def assert_serves(shell, text, printed):
    """Check that the bridge's agent answers `initialize` at the printed address."""
    address = re.search(r"(https?://[^/\s]+)/login\?code=", printed)[1]
    here = f"{'https' if '--tls-cert' in text else 'http'}://127.0.0.1:{urlsplit(address).port or 8421}"
    done = shell.run(f"PYTHONPATH={ROOT} python -m tests.docs.ask_bridge {here} {urlsplit(address).netloc}")
    assert '"agentCapabilities"' in done.stdout, f"{text}: {done.stdout}{done.stderr}"


def open_page(shell, address):
    """Open a page like a browser, following redirects."""
    opened = shell.run(f"python -c 'import sys, urllib.request as web; web.urlopen(sys.argv[1])' '{address}'")
    assert opened.returncode == 0, opened.stderr


def fits(printed, shown):
    """Return whether the output matches the documented one. Decimal numbers and `…` match anything."""
    pattern = re.sub(r"(\\ ){2,}|\\?\n", lambda _: r"\s+", re.escape(shown.strip()))
    pattern = re.sub(r"\d+\\\.\d+", lambda _: r"\d+\.\d+", pattern).replace("…", ".*")
    pattern = pattern.replace(r"\d+\.\d+s", r"\d+\.\d+s(?: \(\d+:\d\d:\d\d\))?")  # over a minute
    return re.fullmatch(pattern, printed.strip())


def test_commands_listed_as_not_run_are_documented():
    assert set(NOT_RUN) <= {command.text for command in COMMANDS}
    assert set(EXIT_CODES) <= {command.text for command in COMMANDS}
