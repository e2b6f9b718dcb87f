"""`dragoman agents install` and `remove`: real npm and pip with an index on this machine, archives over real TLS."""

import base64
import hashlib
import io
import json
import os
import random
import shutil
import signal
import ssl
import subprocess
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dragoman.cli import main as run_command
from tests.cli.package_index import PackageIndex
from tests.cli.terminal import Terminal
from tests.commands import DRAGOMAN, dragoman
from tests.store.certificates import Authority

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not here")


@pytest.fixture
def index(tmp_path, monkeypatch):
    served = PackageIndex()
    for name, value in served.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    yield served
    served.close()


@pytest.fixture
def archives(tmp_path, monkeypatch):
    """Serve files over TLS with a certificate that only these tests trust."""
    files = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = files[self.path]
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


def tar(*members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def damaged(data):
    """Change a few bytes in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes(255 - byte for byte in data[middle : middle + 8]) + data[middle + 8 :]


def zipped(name, data):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, data)
    return packed.getvalue()


@needs_npm
def test_the_person_is_shown_the_hash_and_the_scripts_and_nothing_runs_before_the_answer(home, index, tmp_path):
    mark = tmp_path / "ran"
    integrity, _ = index.add_npm("small-agent", script=f"echo ran >> {mark}")
    register(home, npx={"package": "small-agent@1.2.3"})
    for answer, code in (("n\n", 1), ("y\n", 0)):
        terminal = Terminal([*DRAGOMAN, "agents", "install", "small"], columns=200)
        terminal.expect("small-agent@1.2.3")
        terminal.expect(integrity)
        terminal.expect("scripts run while it is installed: small-agent")
        terminal.expect("Install it?")
        assert not mark.exists()
        terminal.press(answer)
        assert terminal.process.wait(60) == code
        assert mark.exists() == (code == 0)
        assert ("receipt.json" in environments(home)) == (code == 0)
    assert dragoman("run", "hi", "--", "small").stdout == "node\n"


def test_an_agent_of_pypi_is_installed_used_and_removed(home, index, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    digest = index.add_wheel("small_agent")
    register(home, uvx={"package": "small_agent@1.2.3", "args": ["--acp"], "env": {"MARK": "marked"}})
    refused = dragoman("agents", "install", "small")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert not (home / "installed").exists()

    done = dragoman("agents", "install", "small", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"sha256:{digest}" in done.stderr
    [row] = [row for row in json.loads(dragoman("agents", "--json").stdout) if row["name"] == "small"]
    assert (row["source"], row["version"]) == ("installed", "1.2.3")
    assert dragoman("run", "hi", "--", "small").stdout == "wheel marked --acp\n"

    assert dragoman("agents", "remove", "small").returncode == 0
    assert environments(home) == []
    assert dragoman("agents", "remove", "small").returncode == 2


@needs_npm
def test_another_content_than_the_index_promised_leaves_nothing_and_keeps_what_was_there(home, index):
    index.add_npm("small-agent")
    register(home, npx={"package": "small-agent@1.2.3"})
    assert dragoman("agents", "install", "small", "--yes").returncode == 0
    before = environments(home)
    wrong = "sha512-" + base64.b64encode(hashlib.sha512(b"other").digest()).decode()
    index.add_npm("small-agent", "1.2.4", integrity=wrong)
    register(home, npx={"package": "small-agent@1.2.4"})
    done = dragoman("agents", "install", "small", "--yes")
    assert (done.returncode, "EINTEGRITY" in done.stderr) == (1, True)
    assert environments(home) == before
    assert dragoman("run", "hi", "--", "small").stdout == "node\n"


@needs_npm
def test_an_interrupted_installation_leaves_nothing_half(home, index):
    _, tarball = index.add_npm("small-agent")
    register(home, npx={"package": "small-agent"})
    index.held.add(tarball)
    command = [*DRAGOMAN, "agents", "install", "small", "--yes"]
    for end in (signal.SIGINT, signal.SIGKILL):
        index.asked_for_held.clear()
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        assert index.asked_for_held.wait(60)
        busy = dragoman("agents", "remove", "small")
        assert (busy.returncode, "at the moment" in busy.stderr) == (1, True)
        os.killpg(process.pid, end)
        assert process.wait(60) != 0
        assert "receipt.json" not in environments(home)
        assert len(environments(home)) == (1 if end == signal.SIGKILL else 0)
    index.release.set()
    assert dragoman("agents", "install", "small", "--yes").returncode == 0
    assert len(environments(home)) == 2  # the receipt and its environment; that of the killed one is gone


@pytest.mark.parametrize(
    ("way", "package"),
    [
        ("npx", "git+https://a.example/a.git"),
        ("npx", "file:../a"),
        ("npx", "--global"),
        ("npx", "https://a.example/a.tgz"),
        ("uvx", "a @ https://a.example/a.whl"),
        ("uvx", "-r/etc/passwd"),
        ("uvx", "./a"),
    ],
)
def test_only_packages_of_an_index_are_installed(way, package, home, capsys, monkeypatch, tmp_path):
    (tmp_path / "npm").write_text("#!/bin/sh\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    register(home, **{way: {"package": package}})
    assert run_command(["agents", "install", "small", "--yes"]) == 1
    assert "is no package of" in capsys.readouterr().err
    assert not (home / "installed").exists()


@pytest.mark.parametrize(
    ("name", "data", "cmd"),
    [
        ("a.tar.gz", tar(("bin/small", b"#!/bin/sh\necho $0\n")), "./bin/small"),
        ("a.zip", zipped("small", b"#!/bin/sh\n"), "small"),
        ("small-linux", b"#!/bin/sh\n", "./small"),
    ],
)
def test_an_archive_with_the_hash_of_the_registry_is_unpacked(name, data, cmd, home, archives, capsys):
    archives[f"/{name}"] = (200, data)
    digest = hashlib.sha256(data).hexdigest()
    register_archive(home, archive=f"{archives['url']}/{name}", cmd=cmd, args=["acp"], sha256=digest)
    assert run_command(["agents", "install", "small", "--yes"]) == 0
    assert "the registry has the same hash" in capsys.readouterr().err
    receipt = json.loads((home / "installed/small/receipt.json").read_text())
    program, argument = receipt["command"]
    assert (os.access(program, os.X_OK), argument, receipt["digest"]) == (True, "acp", f"sha256:{digest}")


@pytest.mark.parametrize(
    ("answer", "sha256", "words"),
    [
        ((200, b"changed"), "0" * 64, "the registry says 0000"),
        ((200, tar(("../../../outside", b"x"))), "", "cannot be unpacked"),
        ((200, tar(("other", b"x"))), "", "has no program ./small"),
        ((200, damaged(tar(("small", bytes(range(256)) * 4000)))), "", "cannot be unpacked"),
        ((200, damaged(tar(("small", random.Random(1).randbytes(200_000))))), "", "cannot be unpacked"),
        ((302, "http://localhost/a.tar.gz"), "", "is no https address"),
    ],
)
def test_an_archive_that_is_not_right_leaves_nothing(answer, sha256, words, home, archives, capsys):
    archives["/a.tar.gz"] = answer
    register_archive(home, archive=f"{archives['url']}/a.tar.gz", cmd="./small", sha256=sha256)
    assert run_command(["agents", "install", "small", "--yes"]) == 1
    assert words in capsys.readouterr().err
    assert environments(home) == []
    assert not (home / "outside").exists()


def test_an_archive_is_not_fetched_without_tls(home, capsys):
    register_archive(home, archive="http://a.example/a.tar.gz", cmd="./small")
    assert run_command(["agents", "install", "small", "--yes"]) == 1
    assert "is no https address" in capsys.readouterr().err
