"""Shared fixtures for the tests of the front."""

import subprocess

import pytest

from dragoman.bridge.front.server import Tls
from tests.bridge.front.serving import serving


@pytest.fixture
async def served(tmp_path):
    async with serving(tmp_path) as place:
        yield place


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    files = Tls(folder / "certificate.pem", folder / "key.pem")
    order = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*order, *names, "-out", files.certificate, "-keyout", files.key], check=True, capture_output=True, timeout=30
    )
    return files
