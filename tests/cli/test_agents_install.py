"""`dragoman agents install` and `remove`: the shown entry, the receipt, and archives over real TLS."""

import hashlib
import json
import os
import shlex
import signal
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dragoman.cli import main as run_command
from dragoman.testing import steps
from tests.catalog.test_archive import tar, zipped
from tests.cli.terminal import Terminal
from tests.commands import DRAGOMAN, dragoman, scripted
from tests.store.certificates import Authority


@pytest.fixture
def runners(tmp_path, monkeypatch):
    """Put an npx and a uvx on PATH that record their arguments and MARK, and act as an agent."""
    folder, called = tmp_path / "bin", tmp_path / "called"
    folder.mkdir()
    command, *rest = scripted([steps.Say("It is me.")])
    program = (
        f"#!{sys.executable}\nimport os, sys\nopen({str(called)!r}, 'a').write("
        "f\"{os.path.basename(sys.argv[0])} {' '.join(sys.argv[1:])} MARK={os.environ.get('MARK')}\\n\")\n"
        f"os.execv({command!r}, {[command, *rest]!r})\n"
    )
    for name in ("npx", "uvx"):
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return called


@pytest.fixture
def archives(tmp_path, monkeypatch):
    """Serve files over TLS with a certificate that only these tests trust."""
    files = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = files[self.path]
            if "held" in files:
                files["asked"].set()
                files["held"].wait(60)
            self.send_response(status)
            self.send_header("Location" if status == 302 else "Content-Type", body if status == 302 else "text/plain")
            self.end_headers()
            if status == 200:
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server", host="localhost"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    files["url"] = f"https://localhost:{server.server_port}"
    yield files
    server.shutdown()
    server.server_close()


def register(home, **distribution):
    entry = {"id": "small", "name": "Small", "version": "1.2.3", "description": "A small one."}
    (home / "registry.json").write_text(
        json.dumps({"version": "1", "agents": [{**entry, "distribution": distribution}]})
    )


def register_archive(home, **binary):
    systems, machines = ("darwin", "linux"), ("aarch64", "x86_64")
    register(home, binary={f"{system}-{machine}": binary for system in systems for machine in machines})


def environments(home):
    return sorted(path.name for path in (home / "installed").glob("*/*"))


def test_whole_command_is_shown_before_anything_runs(home, runners):
    env = {"LD_PRELOAD": "/tmp/a b.so", "MARK": "x\n  command: true"}
    register(home, npx={"package": "@s/small", "args": ["--acp", "a b", "\u202e"], "env": env})
    for answer, code in (("n\n", 1), ("y\n", 0)):
        terminal = Terminal([*DRAGOMAN, "agents", "install", "small"], columns=200)
        terminal.expect("npx: @s/small@1.2.3")
        terminal.expect(r"command: npx -y @s/small@1.2.3 --acp 'a b' '\u202e'")
        terminal.expect("with LD_PRELOAD='/tmp/a b.so'")
        terminal.expect(r"with MARK='x\n  command: true'")
        terminal.expect("Install it?")
        terminal.press(answer)
        assert terminal.process.wait(60) == code
        assert environments(home) == (["receipt.json"] if code == 0 else [])
    assert not runners.exists()


@pytest.mark.parametrize(
    ("way", "called"),
    [
        ({"npx": {"package": "small@1.2.0"}}, "npx -y small@1.2.0"),
        ({"uvx": {"package": "small", "cmd": "/bin/sh"}}, "uvx small==1.2.3"),
    ],
)
def test_package_is_installed_started_and_removed(way, called, home, runners):
    [[runner, package]] = way.items()
    register(home, **{runner: {**package, "args": ["--acp"], "env": {"MARK": "marked"}}})
    refused = dragoman("run", "hi", "--", "small")
    assert (refused.returncode, "install it: dragoman agents install small" in refused.stderr) == (2, True)
    refused = dragoman("agents", "install", "small")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert not (home / "installed").exists()

    done = dragoman("agents", "install", "small", "--yes")
    assert done.returncode == 0, done.stderr
    [row] = [row for row in json.loads(dragoman("agents", "--format", "json").stdout) if row["name"] == "small"]
    assert (row["source"], row["version"]) == ("installed", "1.2.3")
    assert not runners.exists()
    assert dragoman("run", "hi", "--", "small").stdout == "It is me.\n"
    assert runners.read_text() == f"{called} --acp MARK=marked\n"

    assert dragoman("agents", "remove", "small").returncode == 0
    assert environments(home) == []
    assert dragoman("agents", "remove", "small").returncode == 2


@pytest.mark.parametrize(
    "distribution",
    [
        {"npx": {"package": "git+https://a.example/a.git"}},
        {"uvx": {"package": "small", "env": {"-S": "sh -c id"}}},
        {"binary": {"cmd": "/bin/sh"}},
        {"binary": {"cmd": "../../../bin/sh"}},
        {"binary": {"cmd": "./small", "archive": "https://["}},
        {"binary": {"cmd": "./small", "archive": "https://a..example/a.tar.gz"}},
        {"binary": {"cmd": "./small", "archive": "http://a.example/a.tar.gz"}},
        {"binary": {"cmd": "./small", "archive": "https://a.example/a.pkg"}},
    ],
)
def test_hostile_entry_installs_nothing(distribution, home, runners, capsys):
    if binary := distribution.get("binary"):
        register_archive(home, **{"archive": "https://a.example/a.tar.gz", **binary})
    else:
        register(home, **distribution)
    assert run_command(["agents", "install", "small", "--yes"]) == 1
    assert "dragoman agents: " in capsys.readouterr().err
    assert environments(home) == []


def test_registry_program_is_not_looked_up_on_path(home, capsys):
    register_archive(home, archive="https://a.example/a.tar.gz", cmd="./sh")
    done = dragoman("run", "hi", "--", "small")
    assert (done.returncode, "not installed" in done.stderr) == (2, True)


def test_interrupted_installation_leaves_nothing_incomplete(home, archives):
    archives["/a.tar.gz"] = (200, tar(("small", b"#!/bin/sh\n")))
    register_archive(home, archive=f"{archives['url']}/a.tar.gz", cmd="small")
    command = [*DRAGOMAN, "agents", "install", "small", "--yes"]
    for end in (signal.SIGINT, signal.SIGKILL):
        archives["held"], archives["asked"] = threading.Event(), threading.Event()
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        assert archives["asked"].wait(60)
        busy = dragoman("agents", "remove", "small")
        assert (busy.returncode, "is installing or removing" in busy.stderr) == (1, True)
        os.killpg(process.pid, end)
        assert process.wait(60) != 0
        archives["held"].set()
        assert len(environments(home)) == (1 if end == signal.SIGKILL else 0)
    assert dragoman("agents", "install", "small", "--yes").returncode == 0
    assert len(environments(home)) == 2  # the receipt and its environment; the killed installation is gone


@pytest.mark.parametrize(
    ("name", "data", "cmd"),
    [
        ("a.tar.gz", tar(("bin/small", b"#!/bin/sh\necho $0\n")), "./bin/small"),
        ("a.zip", zipped(("small", b"#!/bin/sh\n")), "small"),
        ("small-linux", b"#!/bin/sh\n", "./small"),
    ],
)
def test_archive_with_the_right_hash_is_unpacked(name, data, cmd, home, archives, capsys):
    archives[f"/{name}"] = (200, data)
    digest = hashlib.sha256(data).hexdigest()
    register_archive(home, archive=f"{archives['url']}/{name}", cmd=cmd, args=["acp"], sha256=digest)
    assert run_command(["agents", "install", "small", "--yes"]) == 0
    assert "the checksum matches the registry" in capsys.readouterr().err
    receipt = json.loads((home / "installed/small/receipt.json").read_text())
    program, argument = receipt["command"]
    assert (os.access(program, os.X_OK), argument, receipt["digest"]) == (True, "acp", f"sha256:{digest}")


def test_program_with_an_equals_sign_starts(home, archives):
    agent = shlex.join(scripted([steps.Say("It is me.")]))
    archives["/small-linux"] = (200, f'#!/bin/sh\n[ "$*" = "echo x" ] && [ "$MARK" = 1 ] && exec {agent}\n'.encode())
    url = f"{archives['url']}/small-linux"
    register_archive(home, archive=url, cmd="./small=1", args=["echo", "x"], env={"MARK": "1"})
    assert dragoman("agents", "install", "small", "--yes").returncode == 0
    assert dragoman("run", "hi", "--", "small").stdout == "It is me.\n"


@pytest.mark.parametrize(
    ("answer", "sha256", "words"),
    [
        ((200, b"changed"), "0" * 64, "the registry says 0000"),
        ((200, tar(("../../../outside", b"x"))), "", "cannot be unpacked"),
        ((200, b""), "", "cannot be unpacked"),
        ((302, "http://localhost/a.tar.gz"), "", "is not an https address"),
    ],
)
def test_wrong_archive_leaves_nothing(answer, sha256, words, home, archives, capsys):
    archives["/a.tar.gz"] = answer
    register_archive(home, archive=f"{archives['url']}/a.tar.gz", cmd="./small", sha256=sha256)
    assert run_command(["agents", "install", "small", "--yes"]) == 1
    assert words in capsys.readouterr().err
    assert environments(home) == []
    assert not (home / "outside").exists()
