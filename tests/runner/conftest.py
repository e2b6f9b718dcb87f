"""An sshd on loopback, and an ssh that reaches it under the name `there`."""

import os
import shutil
import subprocess
from getpass import getuser
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.process_state import SHARED_CHILDREN
from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def sshd(tmp_path_factory):
    """Return the directory of `ssh` for PATH."""
    found = subprocess.run([ROOT / "scripts" / "sshd"], capture_output=True, text=True, check=False).stdout.strip()
    if not found:
        pytest.skip("there is no sshd, and scripts/sshd could not install it")
    directory = tmp_path_factory.mktemp("sshd")
    port = free_port()
    for name in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
        subprocess.run(make, check=True, capture_output=True)
    shutil.copy(directory / "user.pub", directory / "authorized")
    (directory / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\nAuthorizedKeysFile {directory}/authorized\n"
        "PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    key = (directory / "host.pub").read_text()
    (directory / "known").write_text(f"[127.0.0.1]:{port} {key}")
    (directory / "ssh_config").write_text(
        f"Host there\n  HostName 127.0.0.1\n  Port {port}\n  User {getuser()}\n  IdentityFile {directory}/user\n"
        f"  UserKnownHostsFile {directory}/known\n  IdentitiesOnly yes\n"
    )
    (directory / "bin").mkdir()
    wrapper = directory / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {directory}/ssh_config "$@"\n')
    wrapper.chmod(0o755)
    log = directory / "log"
    with log.open("wb") as errors:
        server = subprocess.Popen([found, "-D", "-e", "-f", str(directory / "sshd_config")], stderr=errors)
    SHARED_CHILDREN.add(server.pid)
    wait_until(lambda: b"listening" in log.read_bytes() or server.poll() is not None)
    assert server.poll() is None, log.read_text()
    yield directory / "bin"
    server.terminate()
    server.wait()


@pytest.fixture
def over_ssh(sshd, monkeypatch):
    """Configure `ssh there` to reach the sshd of the tests."""
    monkeypatch.setenv("PATH", f"{sshd}{os.pathsep}{os.environ['PATH']}")
