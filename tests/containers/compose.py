"""A podman-compose project, started as documented and stopped again."""

import os
import socket
import ssl
import subprocess
from contextlib import closing, contextmanager

from tests.containers.engine import ROOT
from tests.containers.podman import names, podman, wait_until

ROOT_CERTIFICATE = "/data/caddy/pki/authorities/local/root.crt"


class Project:
    """The containers of one compose file."""

    def __init__(self, directory, file, **variables):
        self._directory = directory
        self._command = ["podman-compose", "--file", file]
        self._environment = {**os.environ, **variables}

    def __call__(self, *arguments):
        """Run podman-compose and return its output and that of the containers."""
        done = subprocess.run(
            [*self._command, *arguments],
            cwd=self._directory,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@contextmanager
def composed(file, *options, directory=ROOT / "deploy", **variables):
    """Start a project, wait until its proxy listens, and remove it with its volumes at the end."""
    project = Project(directory, file, **variables)
    try:
        project("up", "--detach", "--no-build", *options)
        wait_until(lambda: listens(443))
        yield project
    finally:
        project("down", "--volumes", "--timeout=5")
        assert not names()


def listens(port):
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def trust_of(proxy):
    """Return the TLS context with which a client trusts a Caddy container."""
    return ssl.create_default_context(cadata=podman("exec", proxy, "cat", ROOT_CERTIFICATE).stdout)
