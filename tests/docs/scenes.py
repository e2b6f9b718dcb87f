"""The state that a page's commands expect: files, sessions, servers and other programs.

A scene prepares the shell of one page. It returns the placeholders of the page and their values, such as the id of a
session.
"""

import shlex
import shutil
import sys

from tests.docs.pages import ROOT, blocks_of

_SCRIPTED = f"exec {sys.executable} -m dragoman.testing " + shlex.quote('[[{"step": "Say", "text": "Hello."}]]')
# Fake versions of other programs. They start an ACP agent or client. `ssh` and `docker` stay on this machine.
_STAND_INS = {
    "my-agent": _SCRIPTED,
    "opencode": _SCRIPTED,
    "claude-agent-acp": "exec dragoman agent",
    "my-client": f'shift; exec {sys.executable} -S -I {ROOT}/tests/docs/plain_client.py "$@"',
    "ssh": 'while [ "$1" != -- ]; do shift; done; exec sh -c "$3"',
    "docker": "exec my-agent",
    "ollama": "echo success",
}
# Programs that would change the machine are refused, so that their commands are listed and not run. `make install` and
# `make run` are run in this clone: they install only into its directory.
_REFUSED = ("pip", "pipx", "uv", "uvx", "npm", "npx", "brew", "sudo")
_REFUSE = 'echo "$0 $* would change this machine: list it in NOT_RUN" >&2; exit 2'
_MAKE = f"""case "$*" in
install|run) exec {shutil.which("make")} --no-print-directory -C {shlex.quote(str(ROOT))} "$1";;
esac
{_REFUSE}"""
# The files of a clone that the pages use.
_CLONE = ("deploy", "examples")
_TALK = """
from dragoman.client import connect_sync

with connect_sync(["dragoman", "agent"]) as agent:
    for prompt in ("Who are you?", "help"):
        session = agent.new_session()
        session.ask(prompt)
        print(session.id)
"""
WITH_DATABASE = "docs/scaling.md"
_TICKETS = "mcpServers:\n  tickets:\n    url: http://127.0.0.1:9099/mcp\n"
_PROVIDER_PORT = 11434  # Ollama's port


def prepare(page, shell, database_server):
    """Prepare the shell of a page, and return the words to replace in its commands."""
    for name, script in {**_STAND_INS, **dict.fromkeys(_REFUSED, _REFUSE), "make": _MAKE}.items():
        shell.add_program(name, script)
    for name in _CLONE:
        (shell.cwd / name).symlink_to(ROOT / name)
    return _SCENES[page](shell, database_server) or {} if page in _SCENES else {}


def _clone(shell, _):
    for directory in (".zsh/completions", ".config/fish/completions"):
        (shell.home / directory).mkdir(parents=True)
    return {"REPOSITORY": str(ROOT)}


def _project(shell, _):
    (shell.home / "project").mkdir()
    shell.set("ANTHROPIC_API_KEY", "sk-ant-a-key")


def _file_of(page, name, language="json"):
    """Return a scene with a file that contains the first block of that language."""

    def write(shell, _):
        text = next(block.text for block in blocks_of(ROOT / page) if block.language == language)
        (shell.cwd / name).write_text(text)

    return write


def _bridge(shell, _):
    shell.start("dragoman serve", lambda printed: "/login?code=" in printed)
    shell.set("DRAGOMAN_TOKEN", (shell.home / ".dragoman" / "bridge" / "token").read_text().strip())
    return {"wss://example.com/acp": "ws://127.0.0.1:8421/acp"}


def _two_sessions(shell, _):
    (shell.cwd / "talk.py").write_text(_TALK)
    done = shell.run("python talk.py && rm talk.py")
    assert done.returncode == 0, done.stderr
    return dict(zip(("4f1c9a02", "77b0c1d2"), done.stdout.split(), strict=True))


def _one_session_and_a_server(shell, _):
    (shell.home / ".dragoman").mkdir(exist_ok=True)
    (shell.home / ".dragoman" / "dragoman.yaml").write_text(_TICKETS)
    return _two_sessions(shell, _)


def _sessions_and_a_bridge(shell, _):
    words = _one_session_and_a_server(shell, _)
    _bridge(shell, _)
    return words


def _providers(shell, _):
    (shell.cwd / "key.txt").write_text("sk-ant-another\n")
    here = f"http://127.0.0.1:{_PROVIDER_PORT}"
    shell.set("ANTHROPIC_BASE_URL", here)
    shell.set("OPENAI_BASE_URL", f"{here}/v1")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        shell.set(name, "sk-a-key")
    _start_module(shell, f"tests.docs.provider {_PROVIDER_PORT}")


def _database(shell, server):
    for name, value in (("PGHOST", server.directory), ("PGPORT", server.port), ("PGUSER", "tester")):
        shell.set(name, str(value))
    name = server.new_database().rpartition("/")[2]
    address = "postgresql://dragoman@db.example.org/dragoman"
    return {address: f"postgresql:///{name}", "dragoman_restored": f"{name}_restored"}


def _servers_of_others(shell, _):
    _file_of("docs/mcp.md", ".mcp.json")(shell, _)
    address = _start_module(shell, "tests.mcp.servers.authorising").strip()
    return {"https://tickets.example.com/mcp": f"{address}/mcp"}


def _start_module(shell, module):
    """Start a server of the tests, and return the line that it prints when it is ready."""
    return shell.start(f"env PYTHONPATH={shlex.quote(str(ROOT))} {sys.executable} -m {module}", bool)


_SCENES = {
    "README.md": _clone,
    "docs/container.md": _project,
    "docs/browser.md": _file_of("docs/browser.md", "agents.json"),
    "docs/check.md": _bridge,
    "docs/mcp.md": _servers_of_others,
    "docs/install.md": _clone,
    "docs/models.md": _providers,
    "docs/quickstart.md": _providers,
    WITH_DATABASE: _database,
    "docs/sessions.md": _sessions_and_a_bridge,
}
